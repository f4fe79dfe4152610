// Lists every section and key that the scenario reader accepts, and completes text at a position of a
// scenario.
#pragma once

#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

namespace rehearse::gui {

struct ScenarioKey {
  enum class Kind { number, decimal, flag, choice, text, list };
  QString path;            // "strategy.schedule"; "cluster.slow" for [[cluster.slow]]
  bool value = false;      // can be written as key = value
  bool section = false;    // can be a TOML table
  bool many = false;       // the table is an element of an array: [[cluster.slow]]
  QStringList values;      // as written in TOML: "\"1f1b\"", "true"; empty: any value
  Kind kind = Kind::text;  // type of the value
};

// Returns the keys sorted by path. Finds them by running the reader on the installed scenarios and presets,
// which is slow the first time: do not call on the window's thread.
std::shared_ptr<const std::vector<ScenarioKey>> scenario_keys();

// A completion that replaces the characters [begin, end) of the text.
struct Completion {
  int begin = 0, end = 0;
  QString typed;        // the part up to the cursor
  QStringList choices;  // sorted
  QString behind;       // text inserted after the choice: " = "
  bool operator==(const Completion&) const = default;
};
// Completes at the cursor: section names in a header, keys within a section, values of a key. Returns nullopt
// if nothing is known about the position.
std::optional<Completion> completion_at(const QString& text, int cursor,
                                        const std::vector<ScenarioKey>& keys);

}  // namespace rehearse::gui
