#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "models/base/error.hpp"
#include "simulator/commands/commands.hpp"
#include "simulator/commands/predict.hpp"
#include "simulator/commands/table.hpp"
#include "simulator/report/format.hpp"

namespace rehearse {
namespace {

struct Row {
  const Measurement* measurement;
  double predicted_step_s = 0;
  double error() const { return predicted_step_s / measurement->measured_step_s - 1; }
};

struct Validation {
  const MeasurementTable* table;
  std::vector<Row> rows;
  double mean_error = 0, mean_absolute_error = 0, median_absolute_error = 0, worst_error = 0;
};

Validation validate(const MeasurementTable& table) {
  Validation v{&table, {}};
  std::vector<double> absolute;
  for (const Measurement& measurement : table.rows) {
    const std::string place = fmt::format("{}:{}", table.path, measurement.id);
    const Prediction prediction = predict(read_scenario_text(measurement.scenario, place), Where::child);
    v.rows.push_back({&measurement, prediction.metrics.step_time_s});
    const double error = v.rows.back().error();
    const auto n = static_cast<double>(table.rows.size());
    v.mean_error += error / n;
    v.mean_absolute_error += std::abs(error) / n;
    if (std::abs(error) > std::abs(v.worst_error)) v.worst_error = error;
    absolute.push_back(std::abs(error));
  }
  std::sort(absolute.begin(), absolute.end());
  v.median_absolute_error = (absolute[(absolute.size() - 1) / 2] + absolute[absolute.size() / 2]) / 2;
  return v;
}

std::string signed_percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

void write_text(const Validation& v, std::ostream& out) {
  std::size_t width = 2;
  for (const Row& row : v.rows) width = std::max(width, row.measurement->id.size());
  out << fmt::format("{}\n\n  {:<{}}  {:>10}  {:>10}  {:>9}\n", v.table->name, "row", width, "measured",
                     "predicted", "error");
  for (const Row& row : v.rows) {
    out << fmt::format("  {:<{}}  {:>8.4f} s  {:>8.4f} s  {:>9}\n", row.measurement->id, width,
                       row.measurement->measured_step_s, row.predicted_step_s, signed_percent(row.error()));
  }
  out << fmt::format("\n  {} rows: mean error {}, mean of absolute errors {}, median {}, worst {}\n",
                     v.rows.size(), signed_percent(v.mean_error), in_percent(v.mean_absolute_error),
                     in_percent(v.median_absolute_error), signed_percent(v.worst_error));
  std::vector<std::string> told;  // rows share most of what is to be said about them
  const auto tell = [&](const char* label, const std::string& text) {
    if (text.empty() || std::find(told.begin(), told.end(), text) != told.end()) return;
    told.push_back(text);
    out << fmt::format("  {}: {}\n", label, text);
  };
  for (const Row& row : v.rows) tell("Source", row.measurement->source);
  for (const Row& row : v.rows) {
    const std::string& note = row.measurement->note;
    for (std::size_t at = 0; at < note.size();) {
      const std::size_t end = std::min(note.find("; ", at), note.size());
      tell("Note", note.substr(at, end - at));
      at = end + 2;
    }
  }
}

void write_csv(const std::vector<Validation>& all, std::ostream& out) {
  out << "table,id,measured_step_s,predicted_step_s,error,source,note\n";
  for (const Validation& v : all) {
    for (const Row& row : v.rows) {
      out << fmt::format("{},{},{},{},{},{},{}\n", csv_field(v.table->name), csv_field(row.measurement->id),
                         row.measurement->measured_step_s, row.predicted_step_s, row.error(),
                         csv_field(row.measurement->source), csv_field(row.measurement->note));
    }
  }
}

void write_json(const std::vector<Validation>& all, std::ostream& out) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Validation& v : all) {
    nlohmann::ordered_json table;
    table["table"] = v.table->name;
    table["mean_error"] = v.mean_error;
    table["mean_absolute_error"] = v.mean_absolute_error;
    table["median_absolute_error"] = v.median_absolute_error;
    table["worst_error"] = v.worst_error;
    for (const Row& row : v.rows) {
      table["rows"].push_back({{"id", row.measurement->id},
                               {"measured_step_s", row.measurement->measured_step_s},
                               {"predicted_step_s", row.predicted_step_s},
                               {"error", row.error()},
                               {"source", row.measurement->source},
                               {"note", row.measurement->note}});
    }
    json.push_back(std::move(table));
  }
  out << json.dump(2) << '\n';
}

}  // namespace

void run_validate(const std::vector<std::string>& tables, Format format, std::ostream& out) {
  const std::vector<std::string> names = tables.empty() ? measurement_tables() : tables;
  if (names.empty()) throw RunError("no tables are installed (benchmarks/measurements)");
  std::vector<MeasurementTable> read;
  for (const std::string& name : names) read.push_back(read_measurements(measurement_path(name)));
  std::vector<Validation> all;
  for (const MeasurementTable& table : read) {
    all.push_back(validate(table));
    if (format == Format::text) write_text(all.back(), out << (all.size() > 1 ? "\n" : ""));
  }
  if (format == Format::csv) write_csv(all, out);
  if (format == Format::json) write_json(all, out);
}

}  // namespace rehearse
