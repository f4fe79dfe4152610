// Finds the keys of a TOML text, even if the text is broken elsewhere, and edits one of them without touching
// the rest.
#pragma once

#include <QString>
#include <optional>
#include <vector>

namespace rehearse::gui {

// Positions are UTF-16 units from the beginning of the text, as in QTextCursor.
struct TomlKey {
  QString path;  // from the root: "strategy.parameter_server.servers", "cluster.slow[0].factor"
  int key_begin = 0;
  int value_begin = 0, value_end = 0;
  int table = -1;          // index into TomlOutline::tables; -1: before the first header
  bool in_braces = false;  // in an inline table
};

struct TomlTable {
  QString path;  // e.g. "strategy", "cluster.slow[0]"
  int header_begin = 0, header_end = 0;
  int last_key_end = 0;  // end of the last value under the header; the header's end if there are none
};

struct TomlOutline {
  std::vector<TomlTable> tables;  // in the order of the text
  std::vector<TomlKey> keys;
  const TomlKey* key(const QString& path) const;  // null if there is none
};

TomlOutline toml_outline(const QString& text);

// Returns the path without its last key, e.g. "strategy" for "strategy.tensor"; empty for a path of one key.
QString parent_of(const QString& path);

// Replaces the characters [begin, end) by `text`.
struct TextEdit {
  int begin = 0, end = 0;
  QString text;
};
// Sets `path` ("training.micro_batch") to the TOML text `value`. Changes nothing else; a trailing comment
// keeps its column if there is room.
TextEdit edit_to_set(const QString& text, const QString& path, const QString& value);
// Removes the key; also removes its line, with a trailing comment, if nothing else is on it. Returns nullopt
// if the key is absent.
std::optional<TextEdit> edit_to_remove(const QString& text, const QString& path);
QString applied(const QString& text, const TextEdit& edit);

}  // namespace rehearse::gui
