// The records of a CSV file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/error.hpp"

namespace rehearse {

struct CsvRecord {
  int line = 1;  // on which it begins
  std::vector<std::string> fields;
};

// RFC 4180: fields may be quoted, a doubled quote stands for one, quoted fields may hold line ends. The first
// record is the names of the columns. Throws InputError, naming `path`, for a text without records, a name
// that stands twice, a quote that is not closed, and records with more or fewer fields than the first one.
std::vector<CsvRecord> parse_csv(const std::string& text, const std::string& path);

// A cell of `column` as a number. Throws InputError for one that is not above 0 or not finite.
double positive_number(const std::string& cell, std::string_view column, const Place& place);

}  // namespace rehearse
