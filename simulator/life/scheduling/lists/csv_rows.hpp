// Reads a CSV file row by row (RFC 4180), gzipped or not, so that its size does not matter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/report/text_stream.hpp"

namespace rehearse {

class CsvRows {
public:
  // Reads the names of the columns. Throws InputError if there are none or if one occurs twice.
  explicit CsvRows(TextStream& text);

  const std::vector<std::string>& columns() const { return columns_; }
  int column(std::string_view name) const;  // -1: there is none
  // Reads the next row, which must have as many fields as there are columns; returns false at the end.
  bool next();
  const std::string& field(int column) const { return fields_[static_cast<std::size_t>(column)]; }
  int line() const { return line_; }   // on which the row begins
  Place place(int column = -1) const;  // of a field of the row, or of the row

private:
  bool read_row();

  TextStream& text_;
  std::vector<std::string> columns_, fields_;
  std::vector<int> starts_;  // columns of the fields in the text, from 1
  int line_ = 1;
};

}  // namespace rehearse
