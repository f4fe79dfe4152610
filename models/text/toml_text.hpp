// A parsed TOML value, written down again.
#pragma once

#include <string>

#include "models/text/toml_value.hpp"

namespace rehearse {

// A document of a table: its values first, then its tables. Parsed again it gives the same values in the same
// order, but that a table's own values stand in front of its tables.
std::string toml_text(const TomlValue& table);
// In quotes, with what they cannot hold escaped.
std::string toml_string(const std::string& text);
// One value as it stands behind "key =": numbers with all their digits, tables in braces.
std::string toml_value_text(const TomlValue& value);

}  // namespace rehearse
