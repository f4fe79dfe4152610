#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <ostream>
#include <thread>

#include "models/text/document.hpp"
#include "models/text/error.hpp"
#include "simulator/commands/collective_table.hpp"
#include "simulator/commands/commands.hpp"
#include "simulator/commands/judged_run.hpp"
#include "simulator/commands/kernel_table.hpp"
#include "simulator/commands/predict.hpp"
#include "simulator/commands/statistics.hpp"
#include "simulator/commands/table.hpp"
#include "simulator/commands/task_pool.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

struct Row {
  const PublishedRow* measurement;
  double measured_step_s = 0;  // 0: not measured
  double predicted_step_s = 0;
  int devices = 0;
  double error() const { return predicted_step_s / measured_step_s - 1; }
};

// The figures of a whole table, or of one of its groups.
struct Summary {
  std::string group;
  ErrorSummary errors;
  std::vector<Efficiency> efficiencies;
};

struct Validation {
  const MeasurementTable* table;
  bool kernels = false;  // of single kernels
  // Times of single kernels or collectives stand in the place of the steps'.
  bool of_operations() const { return kernels || table->collectives; }
  std::vector<Row> rows;
  std::vector<Observation> observations;  // by row
  Summary whole;
  std::vector<Summary> groups;  // if there are several, in order of their first rows
  std::vector<Comparison> comparisons;
};

Summary summary_of(const Validation& v, const std::vector<Efficiency>& efficiencies,
                   const std::string* group) {
  Summary summary;
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
  Validation v{&kernels.table, true, {}, {}, {}, {}, {}};
  const std::vector<double> seconds = predicted_times_s(kernels);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const PublishedRow& m = kernels.table.rows[i];
    v.rows.push_back({&m, m.measured_step_s, seconds[i], 1});
    Observation& observation = v.observations.emplace_back();
    observation.group = m.group;
  }
  summarize(v);
  return v;
}

struct PredictedRow {
  double samples = 0, step_s = 0;
  int devices = 0;
};

PredictedRow predict_row(const MeasurementTable& table, std::size_t row,
                         const std::vector<std::string>& overrides, Where where) {
  const PublishedRow& m = table.rows[row];
  const std::string place = fmt::format("{}:{}", table.path, m.id);
  const Prediction prediction = predict(read_scenario_text(m.scenario, place, overrides), where);
  return {prediction.plan.schedule->samples, prediction.metrics.step_time_s,
          prediction.scenario.cluster->devices()};
}

// Several rows at once, each in a process of its own.
std::vector<PredictedRow> predict_rows(const MeasurementTable& table,
                                       const std::vector<std::string>& overrides) {
  std::vector<PredictedRow> predicted(table.rows.size());
  std::vector<bool> known(table.rows.size(), false);
  TaskPool pool;
  pool.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  pool.next = [&, row = std::size_t{0}]() mutable {
    return row < table.rows.size() ? static_cast<std::int64_t>(row++) : -1;
  };
  pool.work = [&](std::int64_t row) {
    const PredictedRow one = predict_row(table, static_cast<std::size_t>(row), overrides, Where::here);
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
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    if (!known[row]) predicted[row] = predict_row(table, row, overrides, Where::child);
  return predicted;
}

Validation validate_collectives(const MeasurementTable& table, const std::vector<std::string>& overrides) {
  Validation v{&table, false, {}, {}, {}, {}, {}};
  const std::vector<double> predicted_s = predict_collectives(table, overrides);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const PublishedRow& m = table.rows[i];
    v.rows.push_back({&m, m.measured_step_s, predicted_s[i], m.collective->devices});
    v.observations.push_back(
        {m.group, "", "", m.collective->devices, 1 / m.measured_step_s, 1 / predicted_s[i]});
  }
  summarize(v);
  return v;
}

Validation validate(const MeasurementTable& table, const std::vector<std::string>& overrides) {
  if (table.collectives) return validate_collectives(table, overrides);
  Validation v{&table, false, {}, {}, {}, {}, {}};
  const std::vector<PredictedRow> predicted = predict_rows(table, overrides);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const PublishedRow& m = table.rows[row];
    const auto& [samples, step_s, devices] = predicted[row];
    const double measured_s =
        m.measured_samples_per_s > 0 ? samples / m.measured_samples_per_s : m.measured_step_s;
    v.rows.push_back({&m, measured_s, step_s, devices});
    v.observations.push_back({m.group, m.scaling, m.comparison, devices,
                              measured_s > 0 ? samples / measured_s : 0, samples / step_s,
                              m.measured_efficiency});
  }
  summarize(v);
  return v;
}

const Efficiency* efficiency_of(const Validation& v, std::size_t row) {
  for (const Efficiency& e : v.whole.efficiencies)
    if (e.row == row) return &e;
  return nullptr;
}

std::size_t right_ones(const Validation& v) {
  return static_cast<std::size_t>(
      std::count_if(v.comparisons.begin(), v.comparisons.end(), [](const Comparison& c) { return c.right; }));
}

void write_rows(const Validation& v, std::ostream& out) {
  std::size_t width = 2;
  for (const Row& row : v.rows) width = std::max(width, row.measurement->id.size());
  const bool scaling = !v.whole.efficiencies.empty();
  out << fmt::format("{}\n\n  {:<{}}  {:>10}  {:>10}  {:>9}{}\n", v.table->name, "row", width, "measured",
                     "predicted", "error", scaling ? "   efficiency measured  predicted" : "");
  const auto time = [&](double seconds) {
    return v.of_operations() ? fmt::format("{:.1f} us", 1e6 * seconds) : fmt::format("{:.4f} s", seconds);
  };
  for (std::size_t i = 0; i < v.rows.size(); ++i) {
    const Row& row = v.rows[i];
    const bool measured = row.measured_step_s > 0;
    std::string line = fmt::format("  {:<{}}  {:>10}  {:>10}  {:>9}", row.measurement->id, width,
                                   measured ? time(row.measured_step_s) : "-", time(row.predicted_step_s),
                                   measured ? signed_percent(row.error()) : "-");
    if (const Efficiency* e = efficiency_of(v, i))
      line += fmt::format("  {:>20}  {:>9}", in_percent(e->measured), in_percent(e->predicted));
    out << line << '\n';
  }
}

std::string in_points(double share) {
  return fmt::format("{:.1f} points", 100 * share);
}

void write_groups(const Validation& v, std::ostream& out) {
  if (v.groups.empty()) return;
  std::size_t width = 5;
  for (const Summary& group : v.groups) width = std::max(width, group.group.size());
  out << fmt::format("\n  {:<{}}  {:>4}  {:>10}  {:>8}  {:>8}  {:>9}  {}\n", "group", width, "rows",
                     "mean error", "absolute", "median", "worst", "efficiencies: off by");
  for (const Summary& group : v.groups) {
    const ErrorSummary& e = group.errors;
    if (e.rows == 0) {
      out << fmt::format("  {:<{}}  {:>4}  {:>10}  {:>8}  {:>8}  {:>9}", group.group, width, 0, "-", "-", "-",
                         "-");
    } else {
      out << fmt::format("  {:<{}}  {:>4}  {:>10}  {:>8}  {:>8}  {:>9}", group.group, width, e.rows,
                         signed_percent(e.mean), in_percent(e.mean_absolute), in_percent(e.median_absolute),
                         signed_percent(e.worst));
    }
    if (!group.efficiencies.empty())
      out << fmt::format("  {:>12}: {}", group.efficiencies.size(),
                         in_points(mean_difference(group.efficiencies)));
    out << '\n';
  }
}

void write_text(const Validation& v, std::ostream& out) {
  write_rows(v, out);
  write_groups(v, out);
  const ErrorSummary& e = v.whole.errors;
  out << '\n';
  if (e.rows > 0)
    out << fmt::format("  {}: mean error {}, mean of absolute errors {}, median {}, worst {}\n",
                       counted(static_cast<double>(e.rows), "row"), signed_percent(e.mean),
                       in_percent(e.mean_absolute), in_percent(e.median_absolute), signed_percent(e.worst));
  if (!v.whole.efficiencies.empty())
    out << fmt::format("  Scaling efficiencies of {}: predictions are off by {} in the mean\n",
                       counted(static_cast<double>(v.whole.efficiencies.size()), "row"),
                       in_points(mean_difference(v.whole.efficiencies)));
  if (!v.comparisons.empty()) {
    out << fmt::format("  Order: {} of {} comparisons right, of rows measured more than 5 % apart\n",
                       right_ones(v), v.comparisons.size());
    for (const Comparison& c : v.comparisons)
      if (!c.right)
        out << fmt::format("    wrong: {} is faster than {}\n", v.rows[c.faster].measurement->id,
                           v.rows[c.slower].measurement->id);
  }
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
  out << "table,id,measured_step_s,predicted_step_s,error,source,note,group,devices,measured_samples_per_s,"
         "predicted_samples_per_s,measured_efficiency,predicted_efficiency\n";
  const auto number = [](double value) { return value > 0 ? fmt::format("{}", value) : std::string(); };
  for (const Validation& v : all) {
    for (std::size_t i = 0; i < v.rows.size(); ++i) {
      const Row& row = v.rows[i];
      const Observation& o = v.observations[i];
      const Efficiency* e = efficiency_of(v, i);
      out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(v.table->name),
                         csv_field(row.measurement->id), number(row.measured_step_s), row.predicted_step_s,
                         row.measured_step_s > 0 ? fmt::format("{}", row.error()) : "",
                         csv_field(row.measurement->source), csv_field(row.measurement->note),
                         csv_field(o.group), row.devices, number(o.measured_per_s), number(o.predicted_per_s),
                         e ? number(e->measured) : "", e ? number(e->predicted) : "");
    }
  }
}

void add_summary(nlohmann::ordered_json& json, const Summary& summary) {
  if (summary.errors.rows > 0) {
    json["mean_error"] = summary.errors.mean;
    json["mean_absolute_error"] = summary.errors.mean_absolute;
    json["median_absolute_error"] = summary.errors.median_absolute;
    json["worst_error"] = summary.errors.worst;
  }
  if (!summary.efficiencies.empty())
    json["efficiency"] = {{"rows", summary.efficiencies.size()},
                          {"mean_absolute_difference", mean_difference(summary.efficiencies)}};
}

nlohmann::ordered_json to_json(const std::vector<Validation>& all) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Validation& v : all) {
    nlohmann::ordered_json table;
    table["table"] = v.table->name;
    add_summary(table, v.whole);
    for (const Summary& summary : v.groups) {
      nlohmann::ordered_json group = {{"group", summary.group}, {"rows", summary.errors.rows}};
      add_summary(group, summary);
      table["groups"].push_back(std::move(group));
    }
    if (!v.comparisons.empty()) {
      nlohmann::ordered_json order = {{"comparisons", v.comparisons.size()}, {"right", right_ones(v)}};
      order["wrong"] = nlohmann::ordered_json::array();
      for (const Comparison& c : v.comparisons)
        if (!c.right)
          order["wrong"].push_back(
              {{"faster", v.rows[c.faster].measurement->id}, {"slower", v.rows[c.slower].measurement->id}});
      table["order"] = std::move(order);
    }
    for (std::size_t i = 0; i < v.rows.size(); ++i) {
      const Row& row = v.rows[i];
      nlohmann::ordered_json told = {{"id", row.measurement->id}};
      if (!row.measurement->group.empty()) told["group"] = row.measurement->group;
      if (!v.kernels && row.devices > 0) told["devices"] = row.devices;
      const char* what = v.of_operations() ? "time_s" : "step_s";
      if (row.measured_step_s > 0) told[fmt::format("measured_{}", what)] = row.measured_step_s;
      told[fmt::format("predicted_{}", what)] = row.predicted_step_s;
      if (row.measured_step_s > 0) told["error"] = row.error();
      if (const Efficiency* e = efficiency_of(v, i))
        told["efficiency"] = {{"measured", e->measured},
                              {"predicted", e->predicted},
                              {"base", v.rows[e->base].measurement->id}};
      told["source"] = row.measurement->source;
      told["note"] = row.measurement->note;
      table["rows"].push_back(std::move(told));
    }
    json.push_back(std::move(table));
  }
  return json;
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
  // Validations point to their tables.
  std::deque<MeasurementTable> tables;
  std::deque<KernelTable> kernels;
  std::vector<Validation> all;
  for (const std::string& name : names) {
    const std::string path = measurement_path(name), text = read_text_file(path, "table");
    if (is_kernel_table(text)) {
      if (!arguments.overrides.empty() && arguments.inputs.empty()) continue;
      if (!arguments.overrides.empty())
        throw InputError({path}, "is a table of kernels beside --set; allowed: tables of scenarios");
      all.push_back(validate(kernels.emplace_back(parse_kernel_table(text, path))));
    } else {
      const bool collectives = is_collective_table(text);
      if (collectives && !arguments.overrides.empty() && arguments.inputs.empty()) continue;
      const MeasurementTable& table = tables.emplace_back(collectives ? parse_collective_table(text, path)
                                                                      : parse_measurements(text, path));
      all.push_back(validate(table, arguments.overrides));
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
