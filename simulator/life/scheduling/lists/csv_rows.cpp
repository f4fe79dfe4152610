#include "simulator/life/scheduling/lists/csv_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/printable.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kMostField = 1 << 16;  // bytes

}  // namespace

CsvRows::CsvRows(TextStream& text) : text_(text) {
  if (!read_row())
    throw InputError({text_.path()}, "the list is empty; allowed: a line of column names, then jobs");
  columns_ = fields_;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (const auto end = columns_.begin() + static_cast<std::ptrdiff_t>(i);
        std::find(columns_.begin(), end, columns_[i]) != end)
      throw InputError({text_.path(), line_, starts_[i]},
                       fmt::format("column \"{}\" appears twice; allowed: once", printable(columns_[i])));
}

int CsvRows::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

Place CsvRows::place(int column) const {
  return {text_.path(), line_, column < 0 ? 1 : starts_[static_cast<std::size_t>(column)]};
}

bool CsvRows::next() {
  if (!read_row()) return false;
  if (fields_.size() != columns_.size())
    throw InputError(place(), fmt::format("the row has {} fields; allowed: {}, the number of columns",
                                          fields_.size(), columns_.size()));
  return true;
}

// Skips empty lines.
bool CsvRows::read_row() {
  fields_.clear();
  starts_.clear();
  while (text_.peek() == '\n' || text_.peek() == '\r') text_.get();
  if (text_.peek() == TextStream::kEnd) return false;
  line_ = text_.line();
  fields_.emplace_back();
  starts_.push_back(text_.column());
  bool quoted = false;
  for (;;) {
    std::string& field = fields_.back();
    if (field.size() > kMostField)
      throw InputError(text_.place(),
                       fmt::format("a field has more than {} bytes; allowed: fewer", kMostField));
    const int c = text_.get();
    if (c == TextStream::kEnd) {
      if (quoted)
        throw InputError(text_.place(), "a quoted field is not closed; allowed: an even number of quotes");
      return true;
    }
    if (quoted) {
      if (c != '"') {
        field += static_cast<char>(c);
      } else if (text_.peek() == '"') {
        field += static_cast<char>(text_.get());
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      fields_.emplace_back();
      starts_.push_back(text_.column());
    } else if (c == '\n') {
      return true;
    } else if (c != '\r') {
      field += static_cast<char>(c);
    }
  }
}

}  // namespace rehearse
