// The parts of a line of TOML that are told apart by colour.
#pragma once

#include <QString>
#include <vector>

namespace rehearse::gui {

enum class TomlPart { section, key, string, number, word, comment };  // word: true, false

struct TomlToken {
  int begin = 0, length = 0;  // UTF-16 units of the line
  TomlPart part = TomlPart::key;
  bool operator==(const TomlToken&) const = default;
};

// What goes on behind the end of a line: a string of several lines, or brackets that are open.
struct TomlLineState {
  enum class Open { none, basic_string, literal_string } open = Open::none;
  int brackets = 0;
  bool operator==(const TomlLineState&) const = default;
};

// The tokens of `line`, which stands behind a line that ended in `state`; `state` becomes its own.
std::vector<TomlToken> toml_tokens(const QString& line, TomlLineState& state);

}  // namespace rehearse::gui
