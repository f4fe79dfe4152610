// Parses TOML, JSON and CSV files into one kind of tree, and writes trees back even if they are broken.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse::adversary {

struct TreeEntry;

struct Tree {
  enum class Kind {
    token,  // a number, a boolean, a date, or anything else: written verbatim
    text,   // a string without its quotes
    array,
    table,
  } kind = Kind::token;
  std::string text;
  std::vector<TreeEntry> children;  // an array's have empty keys; a table may repeat a key

  bool has_children() const { return kind == Kind::array || kind == Kind::table; }
};

struct TreeEntry {
  std::string key;
  Tree value;
};

inline Tree token(std::string text) {
  return {Tree::Kind::token, std::move(text), {}};
}
inline Tree string(std::string text) {
  return {Tree::Kind::text, std::move(text), {}};
}

enum class Syntax { toml, json, csv };
Tree parse(Syntax syntax, const std::string& text);  // well-formed only; CSV: array of string arrays
std::string write(Syntax syntax, const Tree& root);

}  // namespace rehearse::adversary
