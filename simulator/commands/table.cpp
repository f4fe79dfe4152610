#include "simulator/commands/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "models/base/document.hpp"
#include "models/base/error.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

struct Record {
  int line = 1;
  std::vector<std::string> fields;
};

// RFC 4180: fields may be quoted, a doubled quote stands for one, quoted fields may hold line ends.
std::vector<Record> parse_csv(const std::string& text, const std::string& path) {
  std::vector<Record> records;
  Record record;
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
  return records;
}

// As after --set: what is no TOML value by itself counts as a string.
std::string toml_value(const std::string& cell) {
  const bool is_value = cell.find_first_of("[{\"'") == 0 || cell == "true" || cell == "false";
  double number = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  const bool is_number = error == std::errc() && end == cell.data() + cell.size();
  return is_value || is_number ? cell : "\"" + cell + "\"";
}

fs::path measurement_folder() {
  const char* data = std::getenv("REHEARSE_DATA");
  const fs::path inside = fs::path("benchmarks") / "measurements";
  if (data != nullptr && *data != '\0') return fs::path(data) / inside;
  // As for presets: an installed binary uses what was installed with it, a built one its source tree.
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path beside = binary.parent_path().parent_path() / "share/rehearse" / inside;
    if (fs::is_directory(beside, error)) return beside;
  }
  const fs::path source = fs::path(REHEARSE_SOURCE_DIR) / inside;
  return fs::is_directory(source, error) ? source : fs::path(REHEARSE_INSTALL_DIR) / inside;
}

}  // namespace

MeasurementTable parse_measurements(const std::string& text, const std::string& path) {
  const std::vector<Record> records = parse_csv(text, path);
  if (records.empty())
    throw InputError({path}, "the table is empty; allowed: a line of column names, then rows");
  const std::vector<std::string>& columns = records.front().fields;
  std::optional<std::size_t> id, measured, source, note;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string& name = columns[i];
    if (std::count(columns.begin(), columns.end(), name) > 1) {
      throw InputError({path, 1, 1}, fmt::format("column \"{}\" stands twice", name));
    }
    if (name == "id")
      id = i;
    else if (name == "measured_step_s")
      measured = i;
    else if (name == "source")
      source = i;
    else if (name == "note")
      note = i;
    else if (name.find('.') == std::string::npos)
      throw InputError({path, 1, 1},
                       fmt::format("column \"{}\" is unknown; allowed: id, measured_step_s, source, note "
                                   "and scenario keys such as strategy.pipeline",
                                   name));
  }
  if (!id || !measured || !source) {
    throw InputError({path, 1, 1}, "a column is missing; required: id, measured_step_s, source");
  }
  MeasurementTable table;
  table.path = path;
  table.name = fs::path(path).stem().string();
  for (std::size_t r = 1; r < records.size(); ++r) {
    const auto& [line, fields] = records[r];
    if (fields.size() != columns.size()) {
      throw InputError({path, line, 1},
                       fmt::format("the row has {} fields; allowed: {}, as many as there are columns",
                                   fields.size(), columns.size()));
    }
    Measurement row;
    row.id = fields[*id];
    row.source = fields[*source];
    if (note) row.note = fields[*note];
    const std::string& number = fields[*measured];
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), row.measured_step_s);
    if (error != std::errc() || end != number.data() + number.size() || !(row.measured_step_s > 0)) {
      throw InputError({path, line, 1},
                       fmt::format("measured_step_s is \"{}\"; allowed: a number above 0", number));
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].find('.') != std::string::npos && !fields[i].empty()) {
        row.scenario += columns[i] + " = " + toml_value(fields[i]) + "\n";
      }
    }
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) throw InputError({path}, "the table has no rows");
  return table;
}

MeasurementTable read_measurements(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code ignored;
  if (!file || fs::is_directory(path, ignored)) throw InputError({path}, "cannot be read as a table");
  return parse_measurements({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}, path);
}

std::vector<std::string> measurement_tables() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(measurement_folder(), error)) {
    if (entry.path().extension() == ".csv") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string measurement_path(const std::string& name) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return name;
  const fs::path shipped = measurement_folder() / (name + ".csv");
  if (fs::is_regular_file(shipped, ignored)) return shipped.string();
  const std::vector<std::string> known = measurement_tables();
  const std::string near = nearest_name(name, known);
  std::string allowed;
  for (const std::string& table : known) allowed += (allowed.empty() ? "" : ", ") + table;
  throw InputError({name},
                   fmt::format("there is no such table{}; allowed: {}, or the path of a file",
                               near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near), allowed));
}

}  // namespace rehearse
