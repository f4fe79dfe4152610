// CSV files (RFC 4180), and which of ours one is.
#pragma once

#include <QString>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::gui {

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

// InputError: no such file, or not even a header.
CsvFile read_csv(const std::string& path);
CsvFile parse_csv(std::string_view text, const std::string& name);

// `rehearse sweep --out`; `rehearse validate --format csv`.
enum class CsvKind { sweep, validation, unknown };
// By its header; unknown also if the file cannot be read.
CsvKind kind_of_csv(const QString& path);
CsvKind kind_of(const CsvFile& file);

}  // namespace rehearse::gui
