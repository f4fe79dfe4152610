#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "models/text/error.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/validate/judged_run.hpp"
#include "simulator/report/comparison.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/schedule/communication.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_run(const std::string& path) {
  return ends_with(path, ".json") || ends_with(path, ".json.gz");
}

std::string name_of_run(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  for (const std::string_view end : {".gz", ".json"})
    if (ends_with(name, end)) name.resize(name.size() - end.size());
  return name;
}

std::string topology_of(const Cluster& cluster) {
  std::string text = cluster.title;
  const Fabric& fabric = cluster.fabric();
  if (cluster.nodes() + cluster.server_nodes() <= 1) return text;
  text += fmt::format(", {}", kFabricNames[static_cast<std::size_t>(fabric.kind)]);
  using enum Fabric::Kind;
  const bool tiers = fabric.kind == leaf_spine || fabric.kind == fat_tree || fabric.kind == rail;
  if (tiers) text += fmt::format(" {:.3g}:1", fabric.oversubscription);
  return text;
}

// Returns what must be equal for strategies to be compared: the model and the cluster, except for its server
// nodes.
std::string group_of(const Scenario& scenario) {
  std::string group;
  for (const auto& [key, value] : scenario.settings)
    if ((key.starts_with("cluster.") || key.starts_with("model.")) && key != "cluster.server_nodes")
      group += fmt::format("{} = {}\n", key, value);
  return group;
}

std::string settings_of(const Scenario& scenario) {
  std::string settings;
  for (const auto& [key, value] : scenario.settings)
    if (!key.starts_with("run.") && !key.starts_with("simulation."))
      settings += fmt::format("{} = {}\n", key, value);
  return settings;
}

// Returns the number of steps that the bytes of a trace cover.
double steps_of(const Trace& trace) {
  return 1.0 + *std::max_element(trace.spans.step.begin(), trace.spans.step.end());
}

// Copies the predicted bytes on links, since executors do not count them. The schedule is the same, and so
// are its bytes.
void take_traffic(Trace& measured, const Trace& predicted) {
  if (!measured.link_use.empty() || measured.spans.size() == 0 || predicted.spans.size() == 0) return;
  const double share = steps_of(measured) / steps_of(predicted);
  measured.link_use = predicted.link_use;
  for (LinkUse& use : measured.link_use) use.bytes *= share;
  measured.bytes_total = predicted.bytes_total * share;
}

void compare_ops(JudgedRun& run, const Trace& measured, const Trace& predicted) {
  const auto add = [&](const Trace& trace, double MeasuredAndPredicted::*figure) {
    for (const OpSeconds& op : seconds_by_op(trace, 0)) {
      auto it = std::find_if(run.ops.begin(), run.ops.end(), [&](const MeasuredAndPredicted& known) {
        return known.name == op.name && known.kind == op.kind;
      });
      if (it == run.ops.end()) it = run.ops.insert(run.ops.end(), {op.name, op.kind});
      (*it).*figure = op.seconds;
    }
  };
  add(predicted, &MeasuredAndPredicted::predicted);
  add(measured, &MeasuredAndPredicted::measured);
  std::erase_if(run.ops,
                [](const MeasuredAndPredicted& op) { return op.measured <= 0 && op.predicted <= 0; });
  const Overlap of_measured = overlap(measured, 0), of_predicted = overlap(predicted, 0);
  run.overlap = {"overlap", "", of_measured.share(), of_predicted.share()};
}

void compare_breakdowns(JudgedRun& run, const Result& measured, const Result& predicted) {
  const auto add = [&](const Result& result, double MeasuredAndPredicted::*figure) {
    for (const Figure& part : figures_of(result)) {
      if (part.kind != Figure::Kind::seconds || part.key == "step_time_s") continue;
      auto it = std::find_if(run.breakdown.begin(), run.breakdown.end(),
                             [&](const MeasuredAndPredicted& known) { return known.kind == part.key; });
      if (it == run.breakdown.end()) it = run.breakdown.insert(run.breakdown.end(), {part.title, part.key});
      (*it).*figure = part.value;
    }
  };
  add(predicted, &MeasuredAndPredicted::predicted);
  add(measured, &MeasuredAndPredicted::measured);
  std::erase_if(run.breakdown,
                [](const MeasuredAndPredicted& part) { return part.measured <= 0 && part.predicted <= 0; });
}

JudgedRun judge(const std::string& path, const std::vector<std::string>& overrides) {
  RecordedRun recorded = read_run(path);
  if (!recorded.measured)
    throw InputError({path, 0, 0}, "is a prediction, not a recorded run: otherData.measured is missing");
  Scenario scenario = recorded.scenario;
  if (!overrides.empty()) {
    scenario = read_scenario_text(recorded.scenario.text, path + " (scenario)", overrides);
    scenario.name = recorded.scenario.name;
  }
  scenario.checkpoint = {};  // the median of the measured steps is one without
  Prediction prediction = predict(std::move(scenario), Where::child, {}, Detail::every_span);
  if (!prediction.metrics.asynchrony) prediction.path = critical_path(prediction.trace, 0);
  take_traffic(recorded.trace, prediction.trace);

  MeasuredFigures figures;
  try {
    figures =
        evaluate_measured(recorded.trace, recorded.scenario, recorded.plan, recorded.measured->warmup_steps);
  } catch (const RunError& error) {
    throw InputError({path, 0, 0}, error.what());
  }
  const Result measured{recorded.scenario, recorded.plan, figures.step, figures.metrics, figures.path, {}};
  const Result predicted = prediction.result();

  JudgedRun run;
  run.name = name_of_run(path);
  run.topology = topology_of(*recorded.scenario.cluster);
  run.strategy = strategy_line(recorded.scenario, *recorded.plan.schedule);
  run.ranks = process_ranks(*recorded.plan.schedule);
  run.measurement = *recorded.measured;
  run.times = figures.times;
  run.samples = recorded.plan.schedule->samples / recorded.plan.schedule->optimizer_steps;
  run.predicted_step_s = prediction.metrics.step_time_s;
  run.memory = {"memory", "",
                fullest_worker_bytes(run.measurement.gpu_ranks, recorded.plan.endpoints,
                                     recorded.plan.schedule->roles.front().size()),
                prediction.metrics.memory.total};
  compare_ops(run, figures.step, prediction.trace);
  compare_breakdowns(run, measured, predicted);
  run.sentence = difference_sentence(predicted, measured, "predicted", "The measured step");
  run.group = group_of(recorded.scenario);
  run.settings = settings_of(recorded.scenario);
  run.notes = prediction.plan.notes;
  return run;
}

}  // namespace

std::vector<std::string> recorded_runs(const std::string& input) {
  std::error_code error;
  if (!fs::is_directory(input, error)) return is_run(input) ? std::vector{input} : std::vector<std::string>{};
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(input, error))
    if (is_run(entry.path().string())) found.push_back(entry.path().string());
  if (error) throw InputError({input, 0, 0}, "cannot be read: " + error.message());
  if (found.empty())
    throw InputError({input, 0, 0},
                     "contains no recorded run; allowed: a folder with .json or .json.gz files");
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<JudgedRun> judge(const std::vector<std::string>& paths,
                             const std::vector<std::string>& overrides) {
  std::vector<JudgedRun> runs;
  runs.reserve(paths.size());
  for (const std::string& path : paths) runs.push_back(judge(path, overrides));
  return runs;
}

std::vector<Comparison> compared_runs(const std::vector<JudgedRun>& runs) {
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = i + 1; j < runs.size(); ++j) {
      if (runs[i].group != runs[j].group || runs[i].settings == runs[j].settings) continue;
      const bool first = runs[i].times.median_s / runs[i].samples < runs[j].times.median_s / runs[j].samples;
      const JudgedRun &faster = runs[first ? i : j], &slower = runs[first ? j : i];
      if (faster.times.upper_quartile_s / faster.samples >= slower.times.lower_quartile_s / slower.samples)
        continue;
      comparisons.push_back(
          {first ? i : j, first ? j : i,
           faster.predicted_step_s / faster.samples < slower.predicted_step_s / slower.samples});
    }
  return comparisons;
}

ErrorSummary summarize(const std::vector<JudgedRun>& runs) {
  std::vector<double> errors;
  errors.reserve(runs.size());
  for (const JudgedRun& run : runs) errors.push_back(run.error());
  return summarize(errors);
}

ErrorSummary summarize_memory(const std::vector<JudgedRun>& runs) {
  std::vector<double> errors;
  for (const JudgedRun& run : runs)
    if (run.memory.measured > 0) errors.push_back(run.memory.error());
  return summarize(errors);
}

}  // namespace rehearse
