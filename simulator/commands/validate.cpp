#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <ostream>
#include <string_view>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/commands/collective_table.hpp"
#include "simulator/commands/commands.hpp"
#include "simulator/commands/explain_row.hpp"
#include "simulator/commands/judged_run.hpp"
#include "simulator/commands/kernel_table.hpp"
#include "simulator/commands/predict.hpp"
#include "simulator/commands/side_by_side.hpp"
#include "simulator/commands/task_pool.hpp"
#include "simulator/commands/uncertainty.hpp"
#include "simulator/commands/validation.hpp"
#include "simulator/report/json.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

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
  return summary;
}

// Brings the rows and their observations together.
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

Validation validate(const KernelTable& kernels) {
  Validation v{&kernels.table, true, {}, {}, {}, {}, {}, {}};
  const std::vector<double> seconds = predicted_times_s(kernels);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const PublishedRow& m = kernels.table.rows[i];
    v.rows.push_back({&m, m.measured_step_s, seconds[i], 1, {}});
    Observation& observation = v.observations.emplace_back();
    observation.group = m.group;
  }
  summarize(v);
  return v;
}

struct PredictedRow {
  double samples = 0, step_s = 0;
  int devices = 0;
  StepInterval interval;
};

// How rows are to be predicted.
struct Asked {
  std::vector<std::string> overrides;
  bool uncertainty = false;
};

PredictedRow predict_row(const MeasurementTable& table, std::size_t row, const Asked& asked, Where where) {
  const PublishedRow& m = table.rows[row];
  const std::string place = fmt::format("{}:{}", table.path, m.id);
  if (asked.uncertainty) where = Where::child;  // more predictions follow
  const Prediction prediction = predict(read_scenario_text(m.scenario, place, asked.overrides), where);
  PredictedRow predicted{prediction.plan.schedule->samples,
                         prediction.metrics.step_time_s,
                         prediction.scenario.cluster->devices(),
                         {}};
  if (asked.uncertainty) {
    const Uncertainty found = uncertainty(prediction, 1);  // rows themselves go side by side
    predicted.interval = {found.low_s, found.high_s};
  }
  return predicted;
}

// For each row the first one with the same scenario: measurements are often repeated.
std::vector<std::size_t> first_rows_alike(const MeasurementTable& table) {
  std::map<std::string_view, std::size_t> first;
  std::vector<std::size_t> alike;
  for (const PublishedRow& row : table.rows)
    alike.push_back(first.emplace(row.scenario, alike.size()).first->second);
  return alike;
}

// Several rows at once, each in a process of its own; rows with the same scenario only once.
std::vector<PredictedRow> predict_rows(const MeasurementTable& table, const Asked& asked) {
  const std::vector<std::size_t> alike = first_rows_alike(table);
  std::vector<PredictedRow> predicted(table.rows.size());
  std::vector<bool> known(table.rows.size(), false);
  TaskPool pool;
  pool.jobs = processors();
  pool.next = [&, row = std::size_t{0}]() mutable {
    while (row < alike.size() && alike[row] != row) ++row;
    return row < alike.size() ? static_cast<std::int64_t>(row++) : -1;
  };
  pool.work = [&](std::int64_t row) {
    const PredictedRow one = predict_row(table, static_cast<std::size_t>(row), asked, Where::here);
    return std::string(reinterpret_cast<const char*>(&one), sizeof one);
  };
  pool.ended = [&](const TaskEnd& end) {
    const auto row = static_cast<std::size_t>(end.task);
    known[row] = end.failure.empty() && end.output.size() == sizeof(PredictedRow);
    if (known[row]) std::memcpy(&predicted[row], end.output.data(), sizeof(PredictedRow));
  };
  pool.tick = [] {};
  run(pool);
  // The first row that failed fails here again, with its own error.
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (alike[row] != row)
      predicted[row] = predicted[alike[row]];
    else if (!known[row])
      predicted[row] = predict_row(table, row, asked, Where::child);
  }
  return predicted;
}

Validation validate_collectives(const MeasurementTable& table, const std::vector<std::string>& overrides) {
  Validation v{&table, false, {}, {}, {}, {}, {}, {}};
  const std::vector<double> predicted_s = predict_collectives(table, overrides);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const PublishedRow& m = table.rows[i];
    v.rows.push_back({&m, m.measured_step_s, predicted_s[i], m.collective->devices, {}});
    v.observations.push_back(
        {m.group, "", "", m.collective->devices, 1 / m.measured_step_s, 1 / predicted_s[i]});
  }
  summarize(v);
  return v;
}

Coverage coverage_of(const std::vector<ValidatedRow>& rows) {
  Coverage coverage;
  std::vector<double> widths;
  for (const ValidatedRow& row : rows) {
    if (row.measured_step_s <= 0) continue;
    ++coverage.rows;
    if (row.inside()) ++coverage.inside;
    widths.push_back((row.interval->high_s - row.interval->low_s) / row.predicted_step_s);
  }
  coverage.median_width = median(std::move(widths));
  return coverage;
}

Validation validate(const MeasurementTable& table, const Asked& asked) {
  if (table.collectives) return validate_collectives(table, asked.overrides);
  Validation v{&table, false, {}, {}, {}, {}, {}, {}};
  const std::vector<PredictedRow> predicted = predict_rows(table, asked);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const PublishedRow& m = table.rows[row];
    const auto& [samples, step_s, devices, interval] = predicted[row];
    const double measured_s = m.step_s(samples);
    v.rows.push_back({&m, measured_s, step_s, devices, {}});
    if (asked.uncertainty) v.rows.back().interval = interval;
    v.observations.push_back({m.group, m.scaling, m.comparison, devices,
                              measured_s > 0 ? samples / measured_s : 0, samples / step_s,
                              m.measured_efficiency});
  }
  summarize(v);
  if (asked.uncertainty) v.coverage = coverage_of(v.rows);
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
    throw InputError({names.front(), 0, 0},
                     "is a table beside recorded runs; allowed with --format csv: only one of both kinds");
  const bool steps_only = arguments.uncertainty || !arguments.explain.empty();
  const char* asked_for = arguments.explain.empty() ? "--uncertainty" : "--explain";
  if (steps_only && !runs.empty())
    throw InputError({runs.front(), 0, 0},
                     fmt::format("is a recorded run beside {}; allowed: tables of step times", asked_for));
  if (!arguments.explain.empty() && names.size() != 1)
    throw InputError({}, fmt::format("--explain is given with {} tables; allowed: one table",
                                     arguments.inputs.empty() ? "all" : fmt::format("{}", names.size())));
  // Validations point to their tables.
  std::deque<MeasurementTable> tables;
  std::deque<KernelTable> kernels;
  std::vector<Validation> all;
  for (const std::string& name : names) {
    const std::string path = measurement_path(name), text = read_text_file(path, "table");
    const bool of_kernels = is_kernel_table(text);
    if (of_kernels || is_collective_table(text)) {
      const char* kind = of_kernels ? "kernels" : "collectives";
      if (arguments.inputs.empty() && (steps_only || !arguments.overrides.empty())) continue;
      if (steps_only)
        throw InputError({path}, fmt::format("is a table of {} beside {}; allowed: tables of step times",
                                             kind, asked_for));
    }
    if (of_kernels) {
      if (!arguments.overrides.empty())
        throw InputError({path}, "is a table of kernels beside --set; allowed: tables of scenarios");
      all.push_back(validate(kernels.emplace_back(parse_kernel_table(text, path))));
    } else {
      const MeasurementTable& table = tables.emplace_back(
          is_collective_table(text) ? parse_collective_table(text, path) : parse_measurements(text, path));
      if (!arguments.explain.empty()) {
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
