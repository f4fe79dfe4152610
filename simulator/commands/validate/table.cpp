#include "simulator/commands/validate/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "models/text/data_folder.hpp"
#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "models/text/number_in.hpp"
#include "models/text/printable.hpp"
#include "models/text/toml_text.hpp"
#include "simulator/commands/validate/csv_records.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kOwnColumns = {
    "id",      "measured_step_s", "measured_samples_per_s", "measured_efficiency", "source", "note", "group",
    "scaling", "comparison"};

bool is_one_of(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// As after --set, a cell that is not a TOML value by itself counts as a string.
std::string toml_value(const std::string& cell) {
  const bool is_value = cell.find_first_of("[{\"'") == 0 || cell == "true" || cell == "false";
  return is_value || number_in<double>(cell) ? cell : toml_string(cell);
}

constexpr const char* kFolder = "benchmarks/measurements";

}  // namespace

MeasurementTable parse_measurements(const std::string& text, const std::string& path) {
  const std::vector<CsvRecord> records = parse_csv(text, path);
  const std::vector<std::string>& columns = records.front().fields;
  const auto column = [&](std::string_view name) {
    const auto found = std::find(columns.begin(), columns.end(), name);
    return found == columns.end() ? std::optional<std::size_t>()
                                  : static_cast<std::size_t>(found - columns.begin());
  };
  for (const std::string& name : columns) {
    if (name.find('.') == std::string::npos && !is_one_of(kOwnColumns, name) &&
        !is_one_of(kMemoryColumns, name))
      throw InputError(
          {path, 1, 1},
          fmt::format("column {} is unknown; allowed: {}, {} and scenario keys such as "
                      "strategy.pipeline",
                      in_quotes(name), fmt::join(kOwnColumns, ", "), fmt::join(kMemoryColumns, ", ")));
  }
  if (!column("id") || !column("source") ||
      !(column("measured_step_s") || column("measured_samples_per_s") || column("measured_efficiency") ||
        std::any_of(kMemoryColumns.begin(), kMemoryColumns.end(), column)))
    throw InputError({path, 1, 1},
                     fmt::format("a column is missing; required: id, source, and one of measured_step_s, "
                                 "measured_samples_per_s, measured_efficiency, {}",
                                 fmt::join(kMemoryColumns.begin(), kMemoryColumns.end() - 1, ", ")));
  MeasurementTable table;
  table.path = path;
  table.name = title_of_file(path);
  for (std::size_t r = 1; r < records.size(); ++r) {
    const int line = records[r].line;
    const std::vector<std::string>& fields = records[r].fields;
    const auto cell_of = [&](std::string_view name) {
      const auto at = column(name);
      return at ? fields[*at] : std::string();
    };
    const auto number = [&](std::string_view name) {
      const std::string cell = cell_of(name);
      return cell.empty() ? 0.0 : positive_number(cell, name, {path, line, 1});
    };
    PublishedRow row;
    row.id = cell_of("id");
    row.source = cell_of("source");
    row.note = cell_of("note");
    row.group = cell_of("group");
    row.scaling = cell_of("scaling");
    row.comparison = cell_of("comparison");
    row.measured_step_s = number("measured_step_s");
    row.measured_samples_per_s = number("measured_samples_per_s");
    row.measured_efficiency = number("measured_efficiency");
    const int measured =
        (row.measured_step_s > 0) + (row.measured_samples_per_s > 0) + (row.measured_efficiency > 0);
    if (measured > 1)
      throw InputError({path, line, 1}, fmt::format("the row has {} measurements; allowed: one", measured));
    row.memory = measured_memory(cell_of, {path, line, 1});
    if (row.scaling.empty() && ((measured == 0 && !row.memory.any()) || row.measured_efficiency > 0))
      throw InputError({path, line, 1},
                       measured == 0
                           ? "the row has no measurement; allowed: one, or none where scaling names the "
                             "rows that are relative to it"
                           : "measured_efficiency is given without scaling; allowed: with the name of the "
                             "rows that it is relative to");
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

std::vector<std::string> measurement_tables() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(data_folder(kFolder), error)) {
    if (entry.path().extension() == ".csv") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string measurement_path(const std::string& name) {
  std::error_code ignored;
  if (fs::is_regular_file(name, ignored)) return name;
  const fs::path shipped = data_folder(kFolder) / (name + ".csv");
  if (fs::is_regular_file(shipped, ignored)) return shipped.string();
  const std::vector<std::string> known = measurement_tables();
  const std::string near = nearest_name(name, known);
  throw InputError({name}, fmt::format("there is no such table{}; allowed: {}, or the path of a file",
                                       near.empty() ? "" : fmt::format(", did you mean \"{}\"?", near),
                                       allowed_names(known, kFolder)));
}

}  // namespace rehearse
