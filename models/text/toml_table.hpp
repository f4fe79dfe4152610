// Tables of TOML values that are changed before they are read: keys are put in, taken out, or filled in from
// another table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/text/toml_value.hpp"

namespace rehearse {

TomlValue toml_table(const Place& place = {});  // an empty one
TomlValue toml_value(std::variant<std::int64_t, double, bool, std::string> data, const Place& place = {});

void put(TomlValue& table, std::string_view key, TomlValue value);  // replaces the value that the key has
void erase_key(TomlValue& table, std::string_view key);
TomlValue* find_table(TomlValue& table, std::string_view key);  // nullptr if it is absent or not a table
const TomlValue* find_table(const TomlValue& table, std::string_view key);

// Whether both mean the same to a reader: 1 is 1.0, and the keys of a table may stand in any order.
bool same_value(const TomlValue& a, const TomlValue& b);

// Copies the values of `defaults` whose keys `table` lacks, table by table, with their places. An array
// counts as one value. Returns the keys that have another value in `table`, as paths below `path`:
// "strategy.bucket_mb".
std::vector<std::string> fill_in(TomlValue& table, const TomlValue& defaults, const std::string& path = "");

// The keys of `table` that `defaults` lacks or to which it gives another value, as paths:
// "device.memory_gib.value".
std::vector<std::string> changed_keys(const TomlValue& table, const TomlValue& defaults);

// How a title says what differs from a preset: ", but for layers, hidden"; empty without keys.
std::string but_for(const std::vector<std::string>& keys);
// How a list of sources says it: "changed by the scenario: layers, hidden".
std::string changed_by_scenario(const std::vector<std::string>& keys);

}  // namespace rehearse
