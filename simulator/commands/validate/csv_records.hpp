// Parses the records of CSV files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {

struct CsvRecord {
  int line = 1;  // line on which it begins
  std::vector<std::string> fields;
};

// Parses text according to RFC 4180: fields may be quoted, a doubled quote represents one, and quoted fields
// may contain line ends. The first record contains the names of the columns. Throws InputError, which names
// `path`, for a text without records, a name that occurs twice, a quote that is not closed, and records with
// more or fewer fields than the first one.
std::vector<CsvRecord> parse_csv(const std::string& text, const std::string& path);

// Parses a cell of `column` as a number. Throws InputError unless it is finite and above 0.
double positive_number(const std::string& cell, std::string_view column, const Place& place);

}  // namespace rehearse
