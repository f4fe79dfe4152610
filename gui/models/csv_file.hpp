// CSV files (RFC 4180), and which of ours one is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::gui {

struct Progress;

struct CsvRow {
  int line = 0;  // where it begins in the file, from 1
  std::vector<std::string> fields;
};

struct CsvFile {
  std::string name;  // of the file, for messages
  std::vector<std::string> header;
  std::vector<CsvRow> rows;           // with as many fields as the header
  std::vector<std::string> problems;  // "line 7 has 3 fields; allowed: 18, as in the header"

  int column(std::string_view name) const;  // -1
};

// InputError: no such file, or not even a header. `progress`, if any, goes up to `until`; Cancelled.
CsvFile read_csv(const std::string& path, Progress* progress = nullptr, double until = 1);
CsvFile parse_csv(std::string_view text, const std::string& name, Progress* progress = nullptr,
                  double until = 1);

// `rehearse sweep --out`; `rehearse validate --format csv`.
enum class CsvKind { sweep, validation, unknown };
CsvKind kind_of(const CsvFile& file);  // by its header

}  // namespace rehearse::gui
