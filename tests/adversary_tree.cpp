#include "tests/adversary_tree.hpp"

#include <nlohmann/json.hpp>

#include "models/text/toml_text.hpp"

namespace rehearse::adversary {
namespace {

Tree from_toml(const TomlValue& value) {
  Tree node;
  if (const auto* text = value.get<std::string>()) return string(*text);
  if (const auto* array = value.get<TomlValue::Array>()) {
    node.kind = Tree::Kind::array;
    for (const TomlValue& item : *array) node.children.push_back({"", from_toml(item)});
  } else if (const auto* table = value.get<TomlValue::Table>()) {
    node.kind = Tree::Kind::table;
    for (const TomlEntry& entry : *table) node.children.push_back({entry.key, from_toml(entry.value)});
  } else {
    node.text = toml_value_text(value);
  }
  return node;
}

Tree from_json(const nlohmann::ordered_json& value) {
  Tree node;
  if (value.is_string()) return string(value.get<std::string>());
  if (!value.is_structured()) return token(value.dump());
  node.kind = value.is_array() ? Tree::Kind::array : Tree::Kind::table;
  for (const auto& [key, item] : value.items())
    node.children.push_back({value.is_array() ? "" : key, from_json(item)});
  return node;
}

Tree from_csv(const std::string& text) {
  Tree table{Tree::Kind::array, "", {}}, row = table;
  std::string field;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      if (quoted && i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = !quoted;
    } else if (!quoted && (text[i] == ',' || text[i] == '\n')) {
      row.children.push_back({"", string(field)});
      field.clear();
      if (text[i] == ',') continue;
      table.children.push_back({"", row});
      row.children.clear();
    } else {
      field += text[i];
    }
  }
  return table;
}

// Escapes the characters that TOML and JSON both escape; other bytes stay unchanged.
std::string in_quotes(const std::string& text) {
  return toml_string(text);
}

std::string key_text(Syntax syntax, const std::string& key) {
  constexpr const char* kBare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const bool bare =
      syntax == Syntax::toml && !key.empty() && key.find_first_not_of(kBare) == std::string::npos;
  return bare ? key : in_quotes(key);
}

std::string inline_text(Syntax syntax, const Tree& node) {
  if (node.kind == Tree::Kind::token) return node.text;
  if (node.kind == Tree::Kind::text) return in_quotes(node.text);
  const bool table = node.kind == Tree::Kind::table;
  std::string out(1, table ? '{' : '[');
  for (const auto& [key, child] : node.children) {
    if (out.size() > 1) out += ", ";
    if (table) out += key_text(syntax, key) + (syntax == Syntax::toml ? " = " : ": ");
    out += inline_text(syntax, child);
  }
  return out + (table ? '}' : ']');
}

std::string toml(const Tree& root) {
  std::string values, tables;
  for (const auto& [key, child] : root.children) {
    if (child.kind != Tree::Kind::table) {
      values += key_text(Syntax::toml, key) + " = " + inline_text(Syntax::toml, child) + "\n";
      continue;
    }
    tables += "[" + key_text(Syntax::toml, key) + "]\n";
    for (const auto& [name, value] : child.children)
      tables += key_text(Syntax::toml, name) + " = " + inline_text(Syntax::toml, value) + "\n";
  }
  return values + tables;
}

std::string csv(const Tree& root) {
  std::string out;
  for (const auto& row : root.children) {
    std::string line;
    if (!row.value.has_children()) line = row.value.text;
    for (const auto& [key, field] : row.value.children) {
      std::string text = field.has_children() ? inline_text(Syntax::json, field) : field.text;
      if (field.kind != Tree::Kind::token && text.find_first_of(",\"\n\r") != std::string::npos) {
        for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2)
          text.insert(at, 1, '"');
        text = '"' + text + '"';
      }
      line += (&field == &row.value.children.front().value ? "" : ",") + text;
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace

Tree parse(Syntax syntax, const std::string& text) {
  switch (syntax) {
    case Syntax::toml:
      return from_toml(parse_toml(text, "seed.toml"));
    case Syntax::json:
      return from_json(nlohmann::ordered_json::parse(text));
    case Syntax::csv:
      return from_csv(text);
  }
  return {};
}

std::string write(Syntax syntax, const Tree& root) {
  if (syntax == Syntax::csv) return csv(root);
  return syntax == Syntax::json || root.kind != Tree::Kind::table ? inline_text(syntax, root) : toml(root);
}

}  // namespace rehearse::adversary
