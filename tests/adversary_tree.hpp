// TOML, JSON and CSV files as one kind of tree, which can be written again however broken it is.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse::adversary {

struct TreeEntry;

struct Tree {
  enum class Kind {
    token,  // a number, a boolean, a date, or anything else: written as it stands
    text,   // a string without its quotes
    array,
    table,
  } kind = Kind::token;
  std::string text;
  std::vector<TreeEntry> children;  // of an array without names; a table's may stand twice

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
Tree parse(Syntax syntax, const std::string& text);  // a well-formed file; CSV: an array of arrays of strings
std::string write(Syntax syntax, const Tree& root);

}  // namespace rehearse::adversary
