#include "simulator/commands/validate/csv_records.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/report/format.hpp"

namespace rehearse {
namespace {

void check(const std::vector<CsvRecord>& records, const std::string& path) {
  const std::vector<std::string>& columns = records.front().fields;
  for (const std::string& name : columns)
    if (std::count(columns.begin(), columns.end(), name) > 1)
      throw InputError({path, 1, 1}, fmt::format("column {} appears twice; allowed: once", in_quotes(name)));
  for (const CsvRecord& record : records)
    if (record.fields.size() != columns.size())
      throw InputError(
          {path, record.line, 1},
          fmt::format("the row has {}; allowed: {}, the number of columns",
                      counted(static_cast<double>(record.fields.size()), "field"), columns.size()));
}

}  // namespace

std::vector<CsvRecord> parse_csv(const std::string& text, const std::string& path) {
  std::vector<CsvRecord> records;
  CsvRecord record;
  std::string field;
  bool quoted = false, started = false;
  int line = 1;
  const auto end_record = [&] {
    if (started) {
      record.fields.push_back(std::move(field));
      records.push_back(std::move(record));
    }
    field.clear();
    record = {line, {}};
    started = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = started = true;
    } else if (c == ',') {
      record.fields.push_back(std::move(field));
      field.clear();
      started = true;
    } else if (c == '\n') {
      end_record();
    } else if (c != '\r') {
      field += c;
      started = true;
    }
  }
  if (quoted)
    throw InputError({path, line, 1}, "a quoted field is not closed; allowed: an even number of quotes");
  end_record();
  if (records.empty())
    throw InputError({path}, "the table is empty; allowed: a line of column names, then rows");
  check(records, path);
  return records;
}

double positive_number(const std::string& cell, std::string_view column, const Place& place) {
  const auto value = finite_number_in(cell);
  if (!value || !(*value > 0))
    throw InputError(place, fmt::format("{} is {}; allowed: a number above 0", column, in_quotes(cell)));
  return *value;
}

}  // namespace rehearse
