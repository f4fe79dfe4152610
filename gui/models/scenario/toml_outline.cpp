#include "gui/models/scenario/toml_outline.hpp"

#include <QHash>
#include <QStringList>
#include <algorithm>

namespace rehearse::gui {
namespace {

bool is_blank(QChar c) {
  return c == ' ' || c == '\t' || c == '\r';
}

QString joined(const QString& path, const QString& key) {
  return path.isEmpty() ? key : path + '.' + key;
}

// Reads one statement after another and skips to the end of the line whatever it does not understand.
class Scanner {
public:
  explicit Scanner(const QString& text) : text_(text), size_(static_cast<int>(text.size())) {}

  TomlOutline scan() {
    while (at_ < size_) {
      skip(" \t\r\n");
      if (at_ >= size_) break;
      if (text_[at_] == '[')
        header();
      else if (text_[at_] != '#')
        assignment(table_path_, false);
      skip_line();
    }
    return std::move(outline_);
  }

private:
  QChar at(int i) const { return i < size_ ? text_[i] : QChar('\n'); }

  void skip(const char* what) {
    const QLatin1String characters(what);
    while (at_ < size_ && characters.contains(text_[at_])) ++at_;
  }

  void skip_line() {
    while (at_ < size_ && text_[at_] != '\n') ++at_;
  }

  // Skips the string at the cursor; an unclosed one ends with its line.
  void skip_string() {
    const QChar quote = text_[at_];
    const bool escapes = quote == '"', several = at(at_ + 1) == quote && at(at_ + 2) == quote;
    at_ += several ? 3 : 1;
    for (; at_ < size_; ++at_) {
      if (escapes && text_[at_] == '\\') {
        ++at_;
      } else if (!several && text_[at_] == '\n') {
        return;
      } else if (text_[at_] == quote && (!several || (at(at_ + 1) == quote && at(at_ + 2) == quote))) {
        at_ += several ? 3 : 1;
        // Quotes before the closing ones belong to the string: """a"""""
        while (several && at(at_) == quote) ++at_;
        return;
      }
    }
    at_ = std::min(at_, size_);
  }

  // Reads a key such as "a.b" at the cursor and removes quotes; empty if there is none.
  QStringList dotted_key() {
    QStringList parts;
    while (true) {
      skip(" \t");
      const int begin = at_;
      QString part;
      if (at(at_) == '"' || at(at_) == '\'') {
        skip_string();
        part = text_.mid(begin + 1, std::max(0, at_ - begin - 2));
      } else {
        while (at_ < size_ && (text_[at_].isLetterOrNumber() || text_[at_] == '_' || text_[at_] == '-'))
          ++at_;
        part = text_.mid(begin, at_ - begin);
      }
      if (at_ == begin) return {};
      parts << part;
      skip(" \t");
      if (at(at_) != '.') return parts;
      ++at_;
    }
  }

  // Reads [a.b] or [[a.b]]; a part that is an array of tables refers to its last element.
  void header() {
    const int begin = at_;
    const bool array = at(at_ + 1) == '[';
    at_ += array ? 2 : 1;
    const QStringList parts = dotted_key();
    if (parts.isEmpty() || at(at_) != ']') return;
    at_ += array ? 2 : 1;
    QString path;
    for (qsizetype i = 0; i < parts.size(); ++i) {
      path = joined(path, parts[i]);
      const bool last = i + 1 == parts.size();
      if (array && last) ++elements_[path];
      if (const int known = elements_.value(path); known > 0 && (array || !last))
        path += QString("[%1]").arg(known - 1);
    }
    outline_.tables.push_back({path, begin, at_, at_});
    table_path_ = path;
  }

  bool assignment(const QString& under, bool in_braces) {
    const int begin = at_;
    const QStringList parts = dotted_key();
    if (parts.isEmpty() || at(at_) != '=') return false;
    ++at_;
    skip(" \t");
    const auto place = outline_.keys.size();
    const int table = static_cast<int>(outline_.tables.size()) - 1;
    const QString path = joined(under, parts.join('.'));
    outline_.keys.push_back({path, begin, at_, at_, table, in_braces});
    value(path);
    outline_.keys[place].value_end = at_;
    if (!in_braces && table >= 0) outline_.tables[static_cast<std::size_t>(table)].last_key_end = at_;
    return true;
  }

  void value(const QString& path) {
    const QChar first = at(at_);
    if (first == '"' || first == '\'') {
      skip_string();
    } else if (first == '[') {
      array(path);
    } else if (first == '{') {
      inline_table(path);
    } else {
      const int begin = at_;
      static const QString kEnds = "#,]}\n";
      while (at_ < size_ && !kEnds.contains(text_[at_])) ++at_;
      while (at_ > begin && is_blank(text_[at_ - 1])) --at_;
    }
  }

  void skip_space_and_comments() {
    for (skip(" \t\r\n"); at(at_) == '#'; skip(" \t\r\n")) skip_line();
  }

  // Whether "[name" begins this line. Within an array, only true, false, inf and nan can be unquoted words.
  bool is_header() const {
    int name = at_;
    while (at(name) == '[') ++name;
    if (name == at_ || !at(name).isLetter() || (at_ > 0 && text_[at_ - 1] != '\n')) return false;
    static const QStringList kWords = {"true", "false", "inf", "nan"};
    int end = name;
    while (at(end).isLetterOrNumber() || at(end) == '_') ++end;
    return !kWords.contains(text_.mid(name, end - name));
  }

  void array(const QString& path) {
    if (++depth_ > kMaxDepth) return skip_line();
    ++at_;
    for (int element = 0;; ++element) {
      const int before_space = at_;
      skip_space_and_comments();
      if (is_header()) {  // the array was not closed
        at_ = before_space;
        break;
      }
      if (at_ >= size_) break;
      if (text_[at_] == ']') {
        ++at_;
        break;
      }
      value(path + QString("[%1]").arg(element));
      const int value_end = at_;
      skip_space_and_comments();
      if (at(at_) == ',') {
        ++at_;
      } else if (at(at_) != ']') {  // not a valid array; continue after the last value
        at_ = value_end;
        break;
      }
    }
    --depth_;
  }

  void inline_table(const QString& path) {
    if (++depth_ > kMaxDepth) return skip_line();
    ++at_;
    while (true) {
      skip(" \t");
      if (at(at_) == '}') {
        ++at_;
        break;
      }
      if (!assignment(path, true)) break;
      skip(" \t");
      if (at(at_) == ',')
        ++at_;
      else if (at(at_) != '}')
        break;
    }
    --depth_;
  }

  static constexpr int kMaxDepth = 64;
  const QString& text_;
  int size_, at_ = 0, depth_ = 0;
  QString table_path_;
  QHash<QString, int> elements_;  // number of elements of arrays of tables
  TomlOutline outline_;
};

int line_end(const QString& text, int from) {
  const auto end = text.indexOf('\n', from);
  return static_cast<int>(end < 0 ? text.size() : end);
}

int line_begin(const QString& text, int from) {
  return static_cast<int>(from == 0 ? 0 : text.lastIndexOf('\n', from - 1) + 1);
}

// Inserts a line after the one that contains `place`.
TextEdit line_after(const QString& text, int place, const QString& line) {
  const int end = line_end(text, place);
  return end == text.size() ? TextEdit{end, end, (text.isEmpty() ? "" : "\n") + line + '\n'}
                            : TextEdit{end + 1, end + 1, line + '\n'};
}

// Replaces the old value; if the new one is longer, removes blanks before a trailing comment to compensate.
TextEdit replacement(const QString& text, const TomlKey& key, const QString& value) {
  int comment = key.value_end;
  while (comment < text.size() && is_blank(text[comment])) ++comment;
  const int gap = comment - key.value_end;
  const bool one_line =
      QStringView(text).mid(key.value_begin, key.value_end - key.value_begin).count('\n') == 0;
  if (gap < 1 || comment >= text.size() || text[comment] != '#' || !one_line)
    return {key.value_begin, key.value_end, value};
  const int grown = static_cast<int>(value.size()) - (key.value_end - key.value_begin);
  return {key.value_begin, comment, value + QString(std::max(1, gap - grown), ' ')};
}

}  // namespace

QString parent_of(const QString& path) {
  return path.left(std::max<qsizetype>(0, path.lastIndexOf('.')));
}

const TomlKey* TomlOutline::key(const QString& path) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const TomlKey& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

TomlOutline toml_outline(const QString& text) {
  return Scanner(text).scan();
}

TextEdit edit_to_set(const QString& text, const QString& path, const QString& value) {
  const TomlOutline outline = toml_outline(text);
  if (const TomlKey* key = outline.key(path)) return replacement(text, *key, value);

  const QString parent = parent_of(path), name = path.mid(parent.isEmpty() ? 0 : parent.size() + 1);
  const QString line = name + " = " + value;
  if (parent.isEmpty()) return {0, 0, line + '\n'};
  for (const TomlTable& table : outline.tables)
    if (table.path == parent) return line_after(text, table.last_key_end, line);
  // In an inline table: after its last key, or as its first one.
  if (const TomlKey* table = outline.key(parent); table && text[table->value_begin] == '{') {
    const TomlKey* last = nullptr;
    for (const TomlKey& key : outline.keys)
      if (key.in_braces && parent_of(key.path) == parent) last = &key;
    return last ? TextEdit{last->value_end, last->value_end, ", " + line}
                : TextEdit{table->value_begin + 1, table->value_begin + 1, ' ' + line + ' '};
  }
  // In a table made of dotted keys: as another dotted key after them.
  for (auto key = outline.keys.rbegin(); key != outline.keys.rend(); ++key) {
    if (key->in_braces || parent_of(key->path) != parent) continue;
    const QString above = key->table < 0 ? "" : outline.tables[static_cast<std::size_t>(key->table)].path;
    return line_after(text, key->value_end, path.mid(above.isEmpty() ? 0 : above.size() + 1) + " = " + value);
  }
  // Otherwise a new table: after the last table with the same parent, or at the end. The header of the first
  // element of an array has two brackets.
  const QString header =
      parent.endsWith("[0]") ? "[[" + parent.chopped(3) + "]]\n" + line : '[' + parent + "]\n" + line;
  for (auto table = outline.tables.rbegin(); table != outline.tables.rend(); ++table)
    if (table->path == parent_of(parent) || parent_of(table->path) == parent_of(parent)) {
      if (parent_of(parent).isEmpty()) break;
      return line_after(text, table->last_key_end, '\n' + header);
    }
  const int end = static_cast<int>(text.size());
  const QString gap = text.isEmpty() || text.endsWith("\n\n") ? "" : text.endsWith('\n') ? "\n" : "\n\n";
  return {end, end, gap + header + '\n'};
}

std::optional<TextEdit> edit_to_remove(const QString& text, const QString& path) {
  const TomlOutline outline = toml_outline(text);
  const TomlKey* key = outline.key(path);
  if (!key) return std::nullopt;
  if (!key->in_braces) {
    const int end = line_end(text, key->value_end);
    return TextEdit{line_begin(text, key->key_begin), std::min<int>(end + 1, static_cast<int>(text.size())),
                    ""};
  }
  // Removes the comma after the key; for the last key, the one before it.
  int end = key->value_end, begin = key->key_begin;
  while (end < text.size() && is_blank(text[end])) ++end;
  if (end < text.size() && text[end] == ',') {
    ++end;
    while (end < text.size() && is_blank(text[end])) ++end;
    return TextEdit{begin, end, ""};
  }
  while (begin > 0 && is_blank(text[begin - 1])) --begin;
  if (begin > 0 && text[begin - 1] == ',') --begin;
  return TextEdit{begin, key->value_end, ""};
}

QString applied(const QString& text, const TextEdit& edit) {
  return text.left(edit.begin) + edit.text + text.mid(edit.end);
}

}  // namespace rehearse::gui
