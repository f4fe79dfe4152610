// Changes TOML tables before they are read: sets and removes keys, and fills them in from another table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/text/toml_value.hpp"

namespace rehearse {

TomlValue toml_table(const Place& place = {});  // an empty table
TomlValue toml_value(std::variant<std::int64_t, double, bool, std::string> data, const Place& place = {});

void put(TomlValue& table, std::string_view key, TomlValue value);  // replaces an existing value
void erase_key(TomlValue& table, std::string_view key);
// Erases a key, if it is there: of "strategy.parameter_server.servers", the key "servers" of the table
// "strategy.parameter_server".
void erase_path(TomlValue& root, std::string_view path);
TomlValue* find_table(TomlValue& table, std::string_view key);  // nullptr if it is absent or not a table
const TomlValue* find_table(const TomlValue& table, std::string_view key);

// Whether both mean the same to a reader: 1 equals 1.0, and the keys of a table can be in any order.
bool same_value(const TomlValue& a, const TomlValue& b);

// Copies the values of `defaults` whose keys `table` lacks, table by table, with their positions. An array
// counts as one value. Returns the keys that have a different value in `table`, as paths below `path`:
// "strategy.bucket_mb".
std::vector<std::string> fill_in(TomlValue& table, const TomlValue& defaults, const std::string& path = "");

// Returns the keys of `table` that are missing or have a different value in `defaults`, as paths:
// "device.memory_gib.value".
std::vector<std::string> changed_keys(const TomlValue& table, const TomlValue& defaults);

// Describes differences from a preset for a title: ", but for layers, hidden"; empty without keys.
std::string but_for(const std::vector<std::string>& keys);
// Describes them for a list of sources: "changed by the scenario: layers, hidden".
std::string changed_by_scenario(const std::vector<std::string>& keys);

}  // namespace rehearse
