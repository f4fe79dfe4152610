#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <ostream>
#include <utility>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/commands/validate/collective_table.hpp"
#include "simulator/commands/validate/explain_row.hpp"
#include "simulator/commands/validate/judged_run.hpp"
#include "simulator/commands/validate/kernel_table.hpp"
#include "simulator/commands/validate/predicted_rows.hpp"
#include "simulator/commands/validate/validate.hpp"
#include "simulator/commands/validate/validation.hpp"
#include "simulator/report/json.hpp"

namespace rehearse {
namespace {

// Returns the coverage of the measured rows with intervals for which `inside` holds; nullopt if no row has an
// interval.
template <class Condition>
std::optional<Coverage> coverage_of(const Validation& v, Condition inside) {
  Coverage coverage;
  std::vector<double> widths;
  bool asked = false;
  for (std::size_t i = 0; i < v.rows.size(); ++i) {
    const ValidatedRow& row = v.rows[i];
    if (!row.uncertainty) continue;
    asked = true;
    if (!inside(i) || row.measured_step_s <= 0) continue;
    ++coverage.rows;
    if (row.inside()) ++coverage.inside;
    widths.push_back((row.uncertainty->high_s - row.uncertainty->low_s) / row.predicted_step_s);
  }
  if (!asked) return std::nullopt;
  coverage.median_width = median(std::move(widths));
  return coverage;
}

TableSummary summary_of(const Validation& v, const std::vector<Efficiency>& efficiencies,
                        const std::string* group) {
  TableSummary summary;
  if (group != nullptr) summary.group = *group;
  const auto inside = [&](std::size_t row) {
    return group == nullptr || v.observations[row].group == *group;
  };
  std::vector<double> errors;
  for (std::size_t i = 0; i < v.rows.size(); ++i)
    if (inside(i) && v.rows[i].measured_step_s > 0) errors.push_back(v.rows[i].error());
  summary.errors = summarize(errors);
  for (const Efficiency& e : efficiencies)
    if (inside(e.row)) summary.efficiencies.push_back(e);
  summary.coverage = coverage_of(v, inside);
  return summary;
}

// Summarizes and compares the rows.
void summarize(Validation& v) {
  const std::vector<Efficiency> efficiencies = scaling_efficiencies(v.observations);
  v.whole = summary_of(v, efficiencies, nullptr);
  std::vector<std::string> names;
  for (const Observation& o : v.observations)
    if (std::find(names.begin(), names.end(), o.group) == names.end()) names.push_back(o.group);
  if (names.size() > 1)
    for (const std::string& name : names) v.groups.push_back(summary_of(v, efficiencies, &name));
  v.comparisons = compared_orders(v.observations);
}

Validation validate(const KernelTable& kernels, bool with_uncertainty) {
  Validation v{&kernels.table, true, {}, {}, {}, {}, {}, {}};
  const std::vector<double> seconds = predicted_times_s(kernels);
  std::vector<Uncertainty> found;
  if (with_uncertainty) found = kernel_uncertainties(kernels);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const PublishedRow& m = kernels.table.rows[i];
    v.rows.push_back({&m, m.measured_step_s, seconds[i], 1, {}});
    if (with_uncertainty) v.rows.back().uncertainty = std::move(found[i]);
    Observation& observation = v.observations.emplace_back();
    observation.group = m.group;
  }
  summarize(v);
  return v;
}

// How to predict the rows.
struct Asked {
  std::vector<std::string> overrides;
  bool uncertainty = false;
};

Validation validate_collectives(const MeasurementTable& table, const Asked& asked) {
  Validation v{&table, false, {}, {}, {}, {}, {}, {}};
  std::vector<PredictedCollective> predicted = predict_collectives(table, asked.overrides, asked.uncertainty);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const PublishedRow& m = table.rows[i];
    v.rows.push_back({&m, m.measured_step_s, predicted[i].time_s, predicted[i].devices,
                      std::move(predicted[i].uncertainty), std::move(predicted[i].note)});
    v.observations.push_back(
        {m.group, "", "", predicted[i].devices, 1 / m.measured_step_s, 1 / predicted[i].time_s});
  }
  summarize(v);
  return v;
}

Validation validate(const MeasurementTable& table, const Asked& asked) {
  if (table.collectives) return validate_collectives(table, asked);
  Validation v{&table, false, {}, {}, {}, {}, {}, {}};
  std::vector<PredictedRow> predicted = predict_rows(table, asked.overrides, asked.uncertainty);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const PublishedRow& m = table.rows[row];
    const auto& [samples, step_s, devices, interval, memory] = predicted[row];
    if (memory) v.memory.push_back({m.id, m.memory, *memory});
    const double measured_s = m.step_s(samples);
    v.rows.push_back({&m, measured_s, step_s, devices, interval, ""});
    v.observations.push_back({m.group, m.scaling, m.comparison, devices,
                              measured_s > 0 ? samples / measured_s : 0, samples / step_s,
                              m.measured_efficiency});
  }
  summarize(v);
  return v;
}

}  // namespace

void run_validate(const ValidateArguments& arguments, std::ostream& out) {
  std::vector<std::string> runs, names;
  for (const std::string& input : arguments.inputs) {
    const std::vector<std::string> found = recorded_runs(input);
    runs.insert(runs.end(), found.begin(), found.end());
    if (found.empty()) names.push_back(input);
  }
  if (runs.empty() && names.empty()) names = measurement_tables();
  if (runs.empty() && names.empty()) throw RunError("no tables are installed (benchmarks/measurements)");
  if (arguments.format == Format::csv && !runs.empty() && !names.empty())
    throw InputError(
        {names.front(), 0, 0},
        "is a table, given with recorded runs; allowed with --format csv: only one of the two kinds");
  const bool explains = !arguments.explain.empty();
  if ((arguments.uncertainty || explains) && !runs.empty())
    throw InputError({runs.front(), 0, 0},
                     explains ? "is a recorded run, given with --explain; allowed: one table of step times"
                              : "is a recorded run, given with --uncertainty; allowed: tables");
  if (explains && names.size() != 1)
    throw InputError({}, fmt::format("--explain is given with {} tables; allowed: one table",
                                     arguments.inputs.empty() ? "all" : fmt::format("{}", names.size())));
  // Deques, since validations point to their tables.
  std::deque<MeasurementTable> tables;
  std::deque<KernelTable> kernels;
  std::vector<Validation> all;
  for (const std::string& name : names) {
    const std::string path = measurement_path(name), text = read_text_file(path, "table");
    const bool of_kernels = is_kernel_table(text);
    if (of_kernels || is_collective_table(text)) {
      if (arguments.inputs.empty() && !arguments.overrides.empty()) continue;
      if (explains)
        throw InputError({path},
                         fmt::format("is a table of {}, given with --explain; allowed: tables of step times",
                                     of_kernels ? "kernels" : "collectives"));
    }
    if (of_kernels) {
      if (!arguments.overrides.empty())
        throw InputError({path}, "is a table of kernels, given with --set; allowed: tables of scenarios");
      all.push_back(validate(kernels.emplace_back(parse_kernel_table(text, path)), arguments.uncertainty));
    } else {
      const MeasurementTable& table = tables.emplace_back(
          is_collective_table(text) ? parse_collective_table(text, path) : parse_measurements(text, path));
      if (explains) {
        return explain_row(table, arguments.explain, arguments.overrides, arguments.format, out);
      }
      all.push_back(validate(table, {arguments.overrides, arguments.uncertainty}));
    }
    if (arguments.format == Format::text) write_text(all.back(), out << (all.size() > 1 ? "\n" : ""));
  }
  const std::vector<JudgedRun> judged = judge(runs, arguments.overrides);
  switch (arguments.format) {
    case Format::text:
      if (!judged.empty()) write_runs_text(judged, out << (all.empty() ? "" : "\n"));
      break;
    case Format::csv:
      judged.empty() ? write_csv(all, out) : write_runs_csv(judged, out);
      break;
    case Format::json: {
      nlohmann::ordered_json json = to_json(all);
      if (!judged.empty()) json.push_back(runs_json(judged));
      out << json_text(json, 2) << '\n';
      break;
    }
  }
}

}  // namespace rehearse
