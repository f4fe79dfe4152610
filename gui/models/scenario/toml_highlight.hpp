// Splits a line of TOML into the parts that the editor colors differently.
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

// What continues after the end of a line: a multi-line string or open brackets.
struct TomlLineState {
  enum class Open { none, basic_string, literal_string } open = Open::none;
  int brackets = 0;
  bool operator==(const TomlLineState&) const = default;
};

// Returns the tokens of `line`. `state` is that at the end of the previous line and is updated.
std::vector<TomlToken> toml_tokens(const QString& line, TomlLineState& state);

}  // namespace rehearse::gui
