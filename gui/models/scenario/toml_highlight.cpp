#include "gui/models/scenario/toml_highlight.hpp"

#include <QRegularExpression>
#include <algorithm>

namespace rehearse::gui {
namespace {

using Open = TomlLineState::Open;

bool is_bare(QChar c) {
  return c.isLetterOrNumber() || c == '_' || c == '-' || c == '.' || c == '+' || c == ':';
}

// Returns the position after a string whose contents begin at `i`. Sets `open` if the string continues on the
// next line.
int string_end(const QString& line, int i, QChar quote, bool several, Open& open) {
  const int size = static_cast<int>(line.size());
  const QString end(several ? 3 : 1, quote);
  for (; i < size; ++i) {
    if (quote == '"' && line[i] == '\\') {
      ++i;
    } else if (QStringView(line).mid(i).startsWith(end)) {
      open = Open::none;
      return i + static_cast<int>(end.size());
    }
  }
  open = !several ? Open::none : quote == '"' ? Open::basic_string : Open::literal_string;
  return size;
}

// Recognizes headers even if brackets seem to be open because a closing one is missing: within an array, only
// the four excluded words can be unquoted.
bool is_header(const QString& line) {
  static const QRegularExpression kHeader(
      R"(^\[{1,2}(?!(true|false|inf|nan)\b)[A-Za-z_][\w.-]*\]{1,2}\s*(#|$))");
  return kHeader.match(line).hasMatch();
}

}  // namespace

std::vector<TomlToken> toml_tokens(const QString& line, TomlLineState& state) {
  std::vector<TomlToken> tokens;
  const int size = static_cast<int>(line.size());
  int i = 0;
  const auto add = [&](int begin, int end, TomlPart part) {
    if (end > begin) tokens.push_back({begin, end - begin, part});
  };
  if (state.open != Open::none) {
    i = string_end(line, 0, state.open == Open::basic_string ? '"' : '\'', true, state.open);
    add(0, i, TomlPart::string);
  } else if (line.trimmed().startsWith('[') && (state.brackets == 0 || is_header(line))) {
    state.brackets = 0;
    const auto comment = line.indexOf('#');
    const int end = static_cast<int>(comment < 0 ? size : comment);
    add(static_cast<int>(line.indexOf('[')), static_cast<int>(line.left(end).lastIndexOf(']')) + 1,
        TomlPart::section);
    add(end, size, TomlPart::comment);
    return tokens;
  }
  while (i < size) {
    const QChar c = line[i];
    const int begin = i;
    if (c == '#') {
      add(i, size, TomlPart::comment);
      break;
    }
    if (c == '"' || c == '\'') {
      const bool several = QStringView(line).mid(i).startsWith(QString(3, c));
      i = string_end(line, i + (several ? 3 : 1), c, several, state.open);
      add(begin, i, TomlPart::string);
    } else if (is_bare(c)) {
      while (i < size && is_bare(line[i])) ++i;
      int next = i;
      while (next < size && line[next].isSpace()) ++next;
      const QString word = line.mid(begin, i - begin);
      const bool truth = word == "true" || word == "false";
      const bool number = c.isDigit() || c == '+' || c == '-' || c == '.' || word == "inf" || word == "nan";
      if (next < size && line[next] == '=')
        add(begin, i, TomlPart::key);
      else if (truth || number)
        add(begin, i, truth ? TomlPart::word : TomlPart::number);
    } else {
      if (c == '[' || c == '{') ++state.brackets;
      if (c == ']' || c == '}') state.brackets = std::max(0, state.brackets - 1);
      ++i;
    }
  }
  return tokens;
}

}  // namespace rehearse::gui
