// Reads CSV files (RFC 4180) and detects which of Rehearse's tables a file is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::gui {

struct Progress;

struct CsvRow {
  int line = 0;  // line in the file where the row begins, from 1
  std::vector<std::string> fields;
};

struct CsvFile {
  std::string name;  // file name for messages
  std::vector<std::string> header;
  std::vector<CsvRow> rows;           // each has as many fields as the header
  std::vector<std::string> problems;  // "line 7 has 3 fields; allowed: 18, as in the header"

  int column(std::string_view wanted) const;  // -1 if there is no such column
};

// Throws InputError if the file does not exist or has no header, and Cancelled. Raises `progress`, if given,
// to `until`.
CsvFile read_csv(const std::string& path, Progress* progress = nullptr, double until = 1);
CsvFile parse_csv(std::string_view text, const std::string& name, Progress* progress = nullptr,
                  double until = 1);

// The output of `rehearse sweep --out` or of `rehearse validate --format csv`.
enum class CsvKind { sweep, validation, unknown };
CsvKind kind_of(const CsvFile& file);  // detected from the header

}  // namespace rehearse::gui
