#include "simulator/commands/validate/explain_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/predicting/uncertainty.hpp"
#include "simulator/commands/validate/terms.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

struct Explanation {
  const PublishedRow& row;
  const Prediction& prediction;
  std::vector<Term> terms;
  double measured_s = 0;  // 0: not measured
  double error_of(double step_s) const { return step_s / measured_s - 1; }
};

const PublishedRow& row_named(const MeasurementTable& table, const std::string& id) {
  std::vector<std::string> ids;
  for (const PublishedRow& row : table.rows) {
    if (row.id == id) return row;
    ids.push_back(row.id);
  }
  const std::string nearest = nearest_name(id, ids);
  throw InputError({table.path},
                   fmt::format("has no row \"{}\"{}; allowed: an id of its {}", id,
                               nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
                               counted(static_cast<double>(ids.size()), "row")));
}

void write_text(const Explanation& e, std::ostream& out) {
  const double step_s = e.prediction.metrics.step_time_s;
  const TimeScale time(std::max(step_s, e.measured_s));
  out << e.row.id << '\n';
  if (e.measured_s > 0)
    out << fmt::format("  measured {}, predicted {} ({})\n", time(e.measured_s), time(step_s),
                       signed_percent(e.error_of(step_s)));
  out << "  Source: " << e.row.source << '\n';
  if (!e.row.note.empty()) out << "  Note: " << e.row.note << '\n';
  out << "\nThe scenario:\n\n" << e.row.scenario << "\nPredicted:\n\n";
  write_text(e.prediction.result(), out);
  if (e.terms.empty()) return;
  std::size_t width = 7;
  for (const Term& term : e.terms) width = std::max(width, term.name.size());
  out << fmt::format("\n  {:<{}}  {:>10}  {:>9}{}\n", "without", width, "step", "change",
                     e.measured_s > 0 ? "      error" : "");
  for (const Term& term : e.terms) {
    out << fmt::format("  {:<{}}  {:>10}  {:>9}", term.name, width, time(term.without_s),
                       signed_percent(term.without_s / step_s - 1));
    if (e.measured_s > 0) out << fmt::format("  {:>9}", signed_percent(e.error_of(term.without_s)));
    out << '\n';
  }
}

void write_csv(const Explanation& e, std::ostream& out) {
  out << "id,without,step_time_s,error\n";
  const auto line = [&](const std::string& without, double step_s) {
    out << fmt::format("{},{},{},{}\n", csv_field(e.row.id), csv_field(without), step_s,
                       e.measured_s > 0 ? fmt::format("{}", e.error_of(step_s)) : "");
  };
  line("", e.prediction.metrics.step_time_s);
  for (const Term& term : e.terms) line(term.name, term.without_s);
}

void write_json(const Explanation& e, std::ostream& out) {
  const double step_s = e.prediction.metrics.step_time_s;
  nlohmann::ordered_json json = {{"id", e.row.id}};
  if (e.measured_s > 0) json["measured_step_s"] = e.measured_s;
  json["predicted_step_s"] = step_s;
  if (e.measured_s > 0) json["error"] = e.error_of(step_s);
  json["source"] = e.row.source;
  json["note"] = e.row.note;
  json["scenario"] = e.row.scenario;
  json["result"] = to_json(e.prediction.result());
  json["without"] = nlohmann::ordered_json::array();
  for (const Term& term : e.terms) {
    json["without"].push_back({{"term", term.name}, {"step_time_s", term.without_s}});
    if (e.measured_s > 0) json["without"].back()["error"] = e.error_of(term.without_s);
  }
  out << json_text(json, 2) << '\n';
}

}  // namespace

void explain_row(const MeasurementTable& table, const std::string& id,
                 const std::vector<std::string>& overrides, Format format, std::ostream& out) {
  const PublishedRow& row = row_named(table, id);
  Prediction prediction = predict(
      read_scenario_text(row.scenario, fmt::format("{}:{}", table.path, row.id), overrides), Where::child);
  explain(prediction);
  prediction.uncertainty = uncertainty(prediction, processors());
  Explanation e{row, prediction, terms_of(prediction)};
  e.measured_s = row.step_s(prediction.metrics.samples);
  switch (format) {
    case Format::text:
      return write_text(e, out);
    case Format::csv:
      return write_csv(e, out);
    case Format::json:
      return write_json(e, out);
  }
}

}  // namespace rehearse
