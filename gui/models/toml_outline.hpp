// Where the keys of a TOML text stand, found also in a text that is broken elsewhere, and how to change one
// of them without touching the rest.
#pragma once

#include <QString>
#include <optional>
#include <vector>

namespace rehearse::gui {

// Places are numbers of UTF-16 units from the beginning of the text, as QTextCursor counts.
struct TomlKey {
  QString path;  // from the root: "strategy.parameter_server.servers", "cluster.slow[0].factor"
  int key_begin = 0;
  int value_begin = 0, value_end = 0;
  int table = -1;          // of TomlOutline::tables; -1: before the first header
  bool in_braces = false;  // of an inline table
};

struct TomlTable {
  QString path;  // "strategy", "cluster.slow[0]"
  int header_begin = 0, header_end = 0;
  int last_key_end = 0;  // end of the last value that stands under the header; the header's end without any
};

struct TomlOutline {
  std::vector<TomlTable> tables;  // in the order of the text
  std::vector<TomlKey> keys;
  const TomlKey* key(const QString& path) const;  // null if there is none
};

TomlOutline toml_outline(const QString& text);

// The characters [begin, end) become `text`.
struct TextEdit {
  int begin = 0, end = 0;
  QString text;
};
// Gives `path` ("training.micro_batch") the value that is written `value`. What stands beside it stays: a
// comment behind it keeps its column where there is room.
TextEdit edit_to_set(const QString& text, const QString& path, const QString& value);
// Takes the key away, with its line and the comment behind it if nothing else stands there. Nothing if it is
// absent.
std::optional<TextEdit> edit_to_remove(const QString& text, const QString& path);
QString applied(const QString& text, const TextEdit& edit);

}  // namespace rehearse::gui
