#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "simulator/commands/validate/judged_run.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/gpu_sentence.hpp"
#include "simulator/report/measurement_json.hpp"
#include "simulator/report/wrap.hpp"

namespace rehearse {
namespace {

using nlohmann::ordered_json;

std::string error_text(const MeasuredAndPredicted& figure) {
  return figure.measured > 0 ? signed_percent(figure.error()) : "-";
}

// Returns a text such as "2 hosts, Intel Xeon (8 cores), 1 NVIDIA H200".
std::string hardware(const Measurement& m) {
  std::string text = counted(m.hosts, "host");
  const auto add = [&](const std::string& part) { text += ", " + part; };
  if (!m.processor.empty()) add(m.processor + (m.cores > 0 ? " (" + counted(m.cores, "core") + ")" : ""));
  if (m.cores > 0 && m.processor.empty()) add(counted(m.cores, "core"));
  if (!m.gpu.empty()) add(fmt::format("{} {}", std::max(1, m.gpus), m.gpu));
  return text;
}

// Returns a text such as "host executor, TCP, real compute".
std::string executed(const Measurement& m) {
  return fmt::format("{} executor{}, {} compute", m.executor, m.transport.empty() ? "" : ", " + m.transport,
                     kRunComputeNames[static_cast<std::size_t>(m.compute)]);
}

std::string gradients(const Measurement& m) {
  if (!m.gradients_identical) return "";
  return *m.gradients_identical ? "Synchronised gradients were bit-identical on all ranks."
                                : "Synchronised gradients differed between ranks.";
}

void write_figures(const std::vector<MeasuredAndPredicted>& figures, const std::string& title, bool with_kind,
                   const TimeScale& time, std::ostream& out) {
  std::size_t width = title.size();
  const auto name = [&](const MeasuredAndPredicted& f) {
    return with_kind ? fmt::format("{} ({})", f.name, f.kind) : f.name;
  };
  for (const MeasuredAndPredicted& f : figures) width = std::max(width, name(f).size());
  out << fmt::format("\n  {:<{}}  {:>11}  {:>11}  {:>9}\n", title, width, "measured", "predicted", "error");
  for (const MeasuredAndPredicted& f : figures)
    out << fmt::format("  {:<{}}  {:>11}  {:>11}  {:>9}\n", name(f), width, time(f.measured),
                       time(f.predicted), error_text(f));
}

void write_one(const JudgedRun& run, std::ostream& out) {
  const Measurement& m = run.measurement;
  out << fmt::format("{}: {} on {}\n\n", run.name, run.strategy, run.topology);
  const TimeScale time(std::max(run.times.most_s, run.predicted_step_s));
  out << fmt::format("  step   measured {}   predicted {}   error {}\n", time(run.times.median_s),
                     time(run.predicted_step_s), signed_percent(run.error()));
  out << fmt::format("  {} measured: {} to {}, the middle half {} to {}\n",
                     counted(static_cast<double>(run.times.seconds.size()), "step"), time(run.times.least_s),
                     time(run.times.most_s), time(run.times.lower_quartile_s),
                     time(run.times.upper_quartile_s));
  write_figures(run.ops, "op, seconds per rank and step", true, time, out);
  write_figures(run.breakdown, "part of the step", false, time, out);
  out << fmt::format("\n  Communication overlapped with computation: measured {}, predicted {}\n\n",
                     in_percent(run.overlap.measured), in_percent(run.overlap.predicted));
  out << wrapped(run.sentence) << '\n';
  out << wrapped(fmt::format("Measured{} by the {} on {}.", m.date.empty() ? "" : " " + m.date, executed(m),
                             hardware(m)))
      << '\n';
  if (!m.command.empty()) out << "  Command: " << m.command << '\n';
  if (!gradients(m).empty()) out << wrapped(gradients(m)) << '\n';
  if (run.memory.measured > 0)
    out << wrapped(gpu_memory_sentence(run.memory.measured, run.memory.predicted)) << '\n';
  if (const std::string clocks = gpu_clocks_sentence(m); !clocks.empty()) out << wrapped(clocks) << '\n';
  if (const std::string energy = gpu_energy_sentence(m); !energy.empty()) out << wrapped(energy) << '\n';
  for (const std::string& note : m.notes) out << wrapped("Note: " + note) << '\n';
}

void write_table(const std::vector<JudgedRun>& runs, std::ostream& out) {
  const auto widest = [&](const std::string& title, std::string JudgedRun::*column) {
    std::size_t width = title.size();
    for (const JudgedRun& run : runs) width = std::max(width, (run.*column).size());
    return width;
  };
  const std::size_t name = widest("run", &JudgedRun::name),
                    topology = widest("topology", &JudgedRun::topology),
                    strategy = widest("strategy", &JudgedRun::strategy);
  const bool memory = summarize_memory(runs).rows > 0;
  out << fmt::format("  {:<{}}  {:<{}}  {:<{}}  {:>5}  {:>11}  {:>7}  {:>11}  {:>8}{}\n", "run", name,
                     "topology", topology, "strategy", strategy, "ranks", "measured", "spread", "predicted",
                     "error", memory ? "  memory error" : "");
  for (const JudgedRun& run : runs) {
    const TimeScale time(run.times.median_s);
    out << fmt::format("  {:<{}}  {:<{}}  {:<{}}  {:>5}  {:>11}  {:>7}  {:>11}  {:>8}{}\n", run.name, name,
                       run.topology, topology, run.strategy, strategy, run.ranks, time(run.times.median_s),
                       in_percent(run.times.spread()), time(run.predicted_step_s),
                       signed_percent(run.error()),
                       memory ? fmt::format("  {:>12}", error_text(run.memory)) : "");
  }
}

std::size_t right_ones(const std::vector<Comparison>& comparisons) {
  return static_cast<std::size_t>(
      std::count_if(comparisons.begin(), comparisons.end(), [](const Comparison& c) { return c.right; }));
}

// Returns {"measured": ..., "predicted": ...}.
ordered_json both(const MeasuredAndPredicted& figure) {
  return {{"measured", figure.measured}, {"predicted", figure.predicted}};
}

ordered_json to_json(const JudgedRun& run) {
  ordered_json json = {{"run", run.name},
                       {"topology", run.topology},
                       {"strategy", run.strategy},
                       {"ranks", run.ranks},
                       {"measured_step_s", run.times.median_s},
                       {"predicted_step_s", run.predicted_step_s},
                       {"error", run.error()}};
  json["step_times"] = to_json(run.times);
  json["ops"] = ordered_json::array();
  for (const MeasuredAndPredicted& op : run.ops) {
    ordered_json one = {{"name", op.name}, {"kind", op.kind}};
    one.update({{"measured_s", op.measured}, {"predicted_s", op.predicted}, {"error", nullptr}});
    if (op.measured > 0) one["error"] = op.error();
    json["ops"].push_back(std::move(one));
  }
  json["overlap"] = both(run.overlap);
  if (run.memory.measured > 0) {
    json["memory_bytes"] = both(run.memory);
    json["memory_bytes"]["error"] = run.memory.error();
  }
  json["breakdown_s"] = ordered_json::object();
  for (const MeasuredAndPredicted& part : run.breakdown)
    json["breakdown_s"][part.kind.substr(0, part.kind.size() - 2)] = both(part);
  json["sentence"] = run.sentence;
  json["measured"] = to_json(run.measurement);
  json["notes"] = run.notes;
  return json;
}

}  // namespace

void write_runs_text(const std::vector<JudgedRun>& runs, std::ostream& out) {
  if (runs.size() == 1) {
    write_one(runs.front(), out);
    return;
  }
  write_table(runs, out);
  const ErrorSummary errors = summarize(runs);
  out << fmt::format("\n  {}: median of absolute errors {}, worst {}, mean error {}\n",
                     counted(static_cast<double>(errors.rows), "run"), in_percent(errors.median_absolute),
                     signed_percent(errors.worst), signed_percent(errors.mean));
  if (const ErrorSummary memory = summarize_memory(runs); memory.rows > 0)
    out << fmt::format("  Memory of {}: median of absolute errors {}, worst {}, mean error {}\n",
                       counted(static_cast<double>(memory.rows), "run"), in_percent(memory.median_absolute),
                       signed_percent(memory.worst), signed_percent(memory.mean));
  const std::vector<Comparison> comparisons = compared_runs(runs);
  if (comparisons.empty()) return;
  out << fmt::format(
      "  Order: {} of {} pairs right, among runs with the same cluster and model whose middle halves do not "
      "overlap\n",
      right_ones(comparisons), comparisons.size());
  for (const Comparison& c : comparisons)
    if (!c.right)
      out << fmt::format("    wrong: {} is faster than {}\n", runs[c.faster].name, runs[c.slower].name);
}

void write_runs_csv(const std::vector<JudgedRun>& runs, std::ostream& out) {
  out << "run,topology,strategy,ranks,executor,transport,compute,date,steps,measured_step_s,least_s,"
         "lower_quartile_s,upper_quartile_s,most_s,predicted_step_s,error,measured_overlap,predicted_overlap,"
         "sentence,measured_memory_bytes,predicted_memory_bytes,memory_error\n";
  for (const JudgedRun& run : runs) {
    const Measurement& m = run.measurement;
    const bool memory = run.memory.measured > 0;
    out << fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(run.name),
        csv_field(run.topology), csv_field(run.strategy), run.ranks, csv_field(m.executor),
        csv_field(m.transport), kRunComputeNames[static_cast<std::size_t>(m.compute)], csv_field(m.date),
        run.times.seconds.size(), run.times.median_s, run.times.least_s, run.times.lower_quartile_s,
        run.times.upper_quartile_s, run.times.most_s, run.predicted_step_s, run.error(), run.overlap.measured,
        run.overlap.predicted, csv_field(run.sentence), memory ? fmt::format("{}", run.memory.measured) : "",
        memory ? fmt::format("{}", run.memory.predicted) : "",
        memory ? fmt::format("{}", run.memory.error()) : "");
  }
}

ordered_json runs_json(const std::vector<JudgedRun>& runs) {
  const ErrorSummary errors = summarize(runs);
  ordered_json json;
  json["median_absolute_error"] = errors.median_absolute;
  json["worst_error"] = errors.worst;
  json["mean_error"] = errors.mean;
  if (const ErrorSummary memory = summarize_memory(runs); memory.rows > 0)
    json["memory"] = {{"runs", memory.rows},
                      {"median_absolute_error", memory.median_absolute},
                      {"worst_error", memory.worst},
                      {"mean_error", memory.mean}};
  const std::vector<Comparison> comparisons = compared_runs(runs);
  json["order"] = {{"comparisons", comparisons.size()}, {"right", right_ones(comparisons)}};
  json["order"]["wrong"] = ordered_json::array();
  for (const Comparison& c : comparisons)
    if (!c.right)
      json["order"]["wrong"].push_back({{"faster", runs[c.faster].name}, {"slower", runs[c.slower].name}});
  for (const JudgedRun& run : runs) json["runs"].push_back(to_json(run));
  return json;
}

}  // namespace rehearse
