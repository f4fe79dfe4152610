// Collects every key of a preset's file, for tests that override each of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/text/document.hpp"
#include "models/text/toml_text.hpp"

namespace rehearse::test {

// Adds each key of `table` with its value in TOML, e.g. {"node.nic_gbps", "200"}; an array is one value.
inline void add_keys(const TomlValue& table, const std::string& path,
                     std::vector<std::pair<std::string, std::string>>& keys) {
  for (const TomlEntry& entry : *table.get<TomlValue::Table>()) {
    const std::string key = path.empty() ? entry.key : path + "." + entry.key;
    if (entry.value.get<TomlValue::Table>())
      add_keys(entry.value, key, keys);
    else
      keys.emplace_back(key, toml_value_text(entry.value));
  }
}

inline std::vector<std::pair<std::string, std::string>> preset_keys(const std::string& folder,
                                                                    const std::string& name) {
  std::vector<std::pair<std::string, std::string>> keys;
  add_keys(Document::parse_file(preset_path(folder, name)).tree(), "", keys);
  return keys;
}

}  // namespace rehearse::test
