#include "backend/commands/run_result.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "backend/runtime/placement.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/gpu_sentence.hpp"
#include "simulator/report/json.hpp"
#include "simulator/report/measurement_json.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/report/report.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/trace/memory_timeline.hpp"

namespace rehearse {
namespace {

// Returns a note if ranks share cores: the time for which they wait for a core is not the schedule's fault.
std::string crowding(const std::vector<RankReport>& reports, int cores) {
  std::map<std::string, int> ranks;
  int most = 0;
  for (const RankReport& report : reports) most = std::max(most, ++ranks[report.host]);
  return most > cores ? fmt::format("{} on {}", counted(most, "rank"), counted(cores, "core")) : "";
}

// Returns the record's notes on where the ranks ran.
std::vector<std::string> where(const std::vector<RankReport>& reports, const Scenario& scenario,
                               const Plan& plan) {
  std::vector<std::string> nodes, machines;
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const int node = scenario.cluster->node_of(plan.endpoints[r]), first_server = scenario.cluster->nodes();
    nodes.push_back(node < first_server ? fmt::format("node{}", node)
                                        : fmt::format("server{}", node - first_server));
    machines.push_back(reports[r].host);
  }
  return placement_notes(nodes, machines);
}

void add_notes(Measurement& measurement, const Scenario& scenario, const Plan& plan,
               const std::vector<RankReport>& reports, const std::vector<std::string>& notes,
               const std::string& not_trained) {
  if (const std::string crowd = crowding(reports, measurement.cores); !crowd.empty())
    measurement.notes.push_back(crowd);
  for (std::string& note : where(reports, scenario, plan)) measurement.notes.push_back(std::move(note));
  measurement.notes.insert(measurement.notes.end(), notes.begin(), notes.end());
  if (const std::optional<Asynchrony>& asynchrony = plan.schedule->asynchrony)
    measurement.notes.push_back(
        fmt::format("asynchronous workers have no common steps: each of the {} steps of run.steps is a "
                    "window of {} rounds of every "
                    "worker, after {} rounds until all are under way; {} rounds of each worker in all",
                    scenario.run.steps, asynchrony->window_rounds, asynchrony->warmup_rounds,
                    plan.schedule->repeats(scenario.run.steps)));
  if (!not_trained.empty())
    measurement.notes.push_back("nothing is trained, only sizes and shapes are real: " + not_trained);
}

// Adds the ranks' GPU records, each with the memory that this step was predicted to need.
void add_gpus(Measurement& measurement, const std::vector<RankReport>& reports, const Trace& step,
              bool trained) {
  std::set<std::string> on_first_host;
  const std::vector<MemoryPeak> peaks = memory_peaks(step, 0);
  for (std::size_t r = 0; r < reports.size(); ++r) {
    if (reports[r].gpu.uuid.empty()) return;
    GpuRecord& rank = measurement.gpu_ranks.emplace_back(reports[r].gpu);
    if (trained) rank.predicted_bytes = peaks.at(r).total;
    if (!rank.driver.empty()) measurement.versions.emplace("NVIDIA driver", rank.driver);
    if (reports[r].host == reports.front().host) on_first_host.insert(rank.uuid);
  }
  measurement.gpus = static_cast<int>(on_first_host.size());
  for (const GpuRecord& rank : measurement.gpu_ranks)
    if (!rank.clocks_unknown.empty()) {
      measurement.notes.push_back("GPU clocks are unknown: " + rank.clocks_unknown);
      return;
    }
}

void write_text(const Result& result, const Measurement& measurement, const StepTimes& times,
                std::ostream& out) {
  write_text(result, out);
  const TimeScale scale(times.median_s);
  std::string text = fmt::format("Measured: {} by {} over {}", measurement.date, measurement.executor,
                                 measurement.transport);
  if (!measurement.gpu.empty()) text += " on " + measurement.gpu;
  text += fmt::format("; median of {}, {} to {}, the middle half {} to {}.",
                      counted(static_cast<double>(times.seconds.size()), "step"), scale(times.least_s),
                      scale(times.most_s), scale(times.lower_quartile_s), scale(times.upper_quartile_s));
  out << wrapped(text) << '\n';
  if (!measurement.losses.empty())
    out << wrapped(fmt::format("Loss: {:.4f} in the first step, {:.4f} in the last of {}.",
                               measurement.losses.front(), measurement.losses.back(),
                               measurement.losses.size()))
        << '\n';
  if (measurement.gradients_identical)
    out << wrapped(*measurement.gradients_identical
                       ? "Ranks with the same layers had bit-identical gradients and weights in every step."
                       : "Ranks with the same layers had DIFFERENT gradients or weights.")
        << '\n';
  const double allocated = fullest_worker_bytes(measurement.gpu_ranks, result.plan.endpoints,
                                                result.plan.schedule->roles.front().size());
  if (allocated > 0) out << wrapped(gpu_memory_sentence(allocated, result.metrics.memory.total)) << '\n';
  if (const std::string clocks = gpu_clocks_sentence(measurement); !clocks.empty())
    out << wrapped(clocks) << '\n';
  if (const std::string energy = gpu_energy_sentence(measurement); !energy.empty())
    out << wrapped(energy) << '\n';
  for (const std::string& note : measurement.notes) out << wrapped("Note: " + note) << '\n';
}

}  // namespace

Measurement describe_run(const Scenario& scenario, const std::string& executor, const std::string& transport,
                         const std::string& command) {
  Measurement measurement;
  measurement.executor = executor;
  measurement.transport = transport;
  measurement.cores = static_cast<int>(std::thread::hardware_concurrency());
  measurement.versions["rehearse-run"] = REHEARSE_VERSION;
  measurement.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  measurement.command = command;
  measurement.compute = scenario.run.compute;
  return measurement;
}

void write_run_result(const RunOutput& output, const Scenario& scenario, const Plan& plan, RealRunResult run,
                      Measurement measurement, std::ostream& out) {
  std::set<std::string> hosts;
  for (const RankReport& report : run.reports) hosts.insert(report.host);
  measurement.hosts = static_cast<int>(hosts.size());
  (measurement.executor == "cuda" ? measurement.gpu : measurement.processor) = run.device;
  measurement.warmup_steps = plan.schedule->asynchrony ? 0 : scenario.run.warmup;
  measurement.losses = run.losses;
  measurement.gradients_identical = run.replicas_equal;
  add_notes(measurement, scenario, plan, run.reports, run.notes, run.not_trained);
  if (run.clock_error_s > 0)
    measurement.notes.push_back(
        fmt::format("times of different ranks agree to {:.1f} us", run.clock_error_s * 1e6));

  const std::string replicas_differ = run.replicas_differ;
  const MeasuredFigures figures = evaluate_measured(run.trace, scenario, plan, measurement.warmup_steps);
  measurement.versions.insert(run.versions.begin(), run.versions.end());
  add_gpus(measurement, run.reports, figures.step, run.not_trained.empty());
  Result result{scenario, plan, figures.step, figures.metrics, figures.path, {}};
  result.measured = &measurement;
  if (output.format == "json") {
    nlohmann::ordered_json json = to_json(result);
    json["measured"] = to_json(measurement);
    json["measured"]["step_times"] = to_json(figures.times);
    out << json_text(json, 2) << '\n';
  } else {
    write_text(result, measurement, figures.times, out);
  }
  out.flush();
  if (!output.trace.empty())
    write_run({scenario, plan, std::move(run.trace), std::move(measurement)}, output.trace);
  if (!replicas_differ.empty())
    throw RunError(replicas_differ + ": the losses are not those of the scenario");
}

std::string write_unfinished_run(const RunOutput& output, const Scenario& scenario, const Plan& plan,
                                 const Journal& journal, Measurement measurement, const std::string& cause) {
  if (journal.closed()) return cause;  // rank 0 had the result of the complete run
  std::string kept;
  try {
    std::optional<UnfinishedRun> run = unfinished_run(scenario, plan, journal);
    if (!run) return cause + "; no step is known to be finished by all ranks, so nothing is recorded";
    kept = fmt::format("the run ended early, after {} of {} steps", run->finished, run->of);
    measurement.warmup_steps = plan.schedule->asynchrony ? 0 : scenario.run.warmup;
    measurement.ended_early = {run->finished, run->of, cause};
    measurement.notes.push_back(kept + ": " + cause);
    measurement.losses = run->losses;
    add_notes(measurement, scenario, plan, run->reports, {}, run->not_trained);
    write_run({scenario, plan, std::move(run->trace), std::move(measurement)}, output.trace);
  } catch (const std::exception& error) {
    return fmt::format("{}; {}and the finished steps are not recorded: {}", cause,
                       kept.empty() ? "" : kept + ", ", error.what());
  }
  return fmt::format("{}; {}, which are recorded in {}", cause, kept, output.trace);
}

}  // namespace rehearse
