// Writes a parsed TOML value as text.
#pragma once

#include <string>

#include "models/text/toml_value.hpp"

namespace rehearse {

// Writes a table as a document: its values first, then its sub-tables. Parsing it gives the same values in
// the same order, except that a table's own values come before its sub-tables.
std::string toml_text(const TomlValue& table);
// Writes a quoted string with the necessary escapes.
std::string toml_string(const std::string& text);
// Writes a value as it appears after "key =": numbers with all their digits, tables in braces.
std::string toml_value_text(const TomlValue& value);

}  // namespace rehearse
