// Every section and key that a scenario may hold, as its reader asks for them, and what may stand at a place
// of its text.
#pragma once

#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

namespace rehearse::gui {

struct ScenarioKey {
  enum class Kind { number, decimal, flag, choice, text, list };
  QString path;            // "strategy.schedule", "cluster.slow" (of [[cluster.slow]])
  bool value = false;      // it may be written as key = value
  bool section = false;    // it may be a table of its own
  bool many = false;       // which then is one of an array: [[cluster.slow]]
  QStringList values;      // as TOML writes them: "\"1f1b\"", "true"; empty: not from a list
  Kind kind = Kind::text;  // of its value
};

// By path. The reader is asked with the scenarios and presets that are there: slow the first time, so not on
// the window's thread.
std::shared_ptr<const std::vector<ScenarioKey>> scenario_keys();

// What may take the place of the characters [begin, end) of a text.
struct Completion {
  int begin = 0, end = 0;
  QString typed;        // of it, up to the cursor
  QStringList choices;  // sorted
  QString behind;       // that follows a choice: " = "
  bool operator==(const Completion&) const = default;
};
// At the cursor: section names in a header, keys of its section, the values of a key. Nothing: nothing is
// known of that place.
std::optional<Completion> completion_at(const QString& text, int cursor,
                                        const std::vector<ScenarioKey>& keys);

}  // namespace rehearse::gui
