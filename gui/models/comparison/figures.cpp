#include "gui/models/comparison/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "gui/models/timeline/step_windows.hpp"
#include "models/text/error.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/json_reader.hpp"
#include "simulator/trace/rows.hpp"
#include "simulator/trace/run_cost.hpp"

namespace rehearse::gui {
namespace {

using nlohmann::json;

constexpr double kWorthNaming = 0.05;  // of the step; a smaller loss is not called the bottleneck
// As a fraction of the step; sentences leave out smaller parts of the critical path.
constexpr double kWorthTelling = 0.001;
constexpr std::size_t kMostTold = 3;
constexpr const char* kWaiting = "waiting for slower ranks";

double seconds(Time ns) {
  return static_cast<double>(ns) * 1e-9;
}

// Returns the value of a key if it has the expected type, else 0 or an empty object, because traces can come
// from any program.
double number(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? it->get<double>() : 0;
}
const json& at(const json& object, const char* key) {
  static const json nothing = json::object();
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

void add_part(RunFigures& figures, std::string name, Kind kind, double seconds) {
  if (seconds > 0) figures.breakdown.push_back({std::move(name), kind, seconds});
}

// Names the largest loss that can be determined without the scenario.
std::string bottleneck_of(const RunFigures& figures) {
  if (figures.breakdown.empty() || figures.step_time_s <= 0) return "";
  const BreakdownPart *worst = nullptr, *unknown = nullptr;
  for (const BreakdownPart& part : figures.breakdown)
    if (part.kind == Kind::other)
      unknown = &part;
    else if (part.kind != Kind::compute && part.seconds > kWorthNaming * figures.step_time_s &&
             (worst == nullptr || part.seconds > worst->seconds))
      worst = &part;
  if (unknown != nullptr && (worst == nullptr || unknown->seconds > worst->seconds) &&
      unknown->seconds > kWorthNaming * figures.step_time_s)
    return fmt::format(
        "Bottleneck: unknown; in {} of the step the trace records no work, communication or waiting. "
        "Record the other streams and the host as well to see the cause.",
        in_percent(unknown->seconds / figures.step_time_s));
  if (worst == nullptr) worst = &figures.breakdown.front();
  return fmt::format("Bottleneck: {}{}, {} of the step.", worst->kind == Kind::bubble ? "the " : "",
                     worst->name, in_percent(worst->seconds / figures.step_time_s));
}

using Amounts = std::vector<std::pair<std::string, double>>;

std::string listed(Amounts amounts, double step_s, const char* after_first) {
  std::stable_sort(amounts.begin(), amounts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(amounts.size(), kMostTold); ++i)
    if (amounts[i].second >= kWorthTelling * step_s)
      text += fmt::format("{}{}{} {}", i == 0 ? "" : ", ", amounts[i].first, i == 0 ? after_first : "",
                          in_percent(amounts[i].second / step_s));
  return text;
}

// Writes the sentence of critical_path_sentence() from the path figures stored in the result.
std::string path_sentence(const json& path, const Amounts& by_kind, double step_s) {
  if (by_kind.empty() || step_s <= 0) return "";
  static const std::set<std::string> kComputing = {"forward",        "recompute",       "backward",
                                                   "backward input", "backward weight", "optimizer"};
  Amounts told;
  for (const auto& [kind, length] : by_kind) {
    const std::string name = kComputing.count(kind) > 0 ? "compute" : kind;
    const auto known =
        std::find_if(told.begin(), told.end(), [&](const auto& one) { return one.first == name; });
    known == told.end() ? void(told.emplace_back(name, length)) : void(known->second += length);
  }
  static const std::map<std::string, std::string> kResources = {{"memory_bandwidth", "device memory"},
                                                                {"intra_node_links", "links inside nodes"},
                                                                {"network_links", "network"}};
  Amounts savings;
  bool simulated = true;
  for (const json& faster : at(path, "ten_percent_faster")) {
    const json& resource = at(faster, "resource");
    if (!resource.is_string()) continue;
    const auto name = kResources.find(resource.get<std::string>());
    simulated = simulated && at(faster, "saved_s").is_number();
    savings.emplace_back(name == kResources.end() ? resource.get<std::string>() : name->second,
                         number(faster, at(faster, "saved_s").is_number() ? "saved_s" : "path_saved_s"));
  }
  const std::string gains = listed(savings, step_s, simulated ? " would save" : " would save about");
  return fmt::format("Critical path: {}{}.", listed(told, step_s, ""),
                     gains.empty() ? "" : "; 10 % faster " + gains);
}

// Returns e.g. "9 published figures, 2 guesses (attention efficiency of a100-80, kernel overhead of
// a100-80)".
std::string rests_on_of(const json& inputs) {
  std::string text;
  for (const char* basis : {"measured", "published", "interpolated", "guessed"}) {
    const json& list = at(inputs, basis);
    if (!list.is_array() || list.empty()) continue;
    const bool one = list.size() == 1, guessed = basis == std::string_view("guessed");
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : ", ", list.size(),
        guessed ? (one ? "guess" : "guesses") : fmt::format("{} figure{}", basis, one ? "" : "s"));
    std::string names;
    for (const json& input : list)
      if (guessed && input.is_string()) {
        const auto name = input.get<std::string>();
        names += (names.empty() ? "" : ", ") + name.substr(0, name.find(':'));
      }
    if (!names.empty()) text += " (" + names + ")";
  }
  return text;
}

MemoryUse memory_of(const json& bytes) {
  MemoryUse use;
  use.weights = number(bytes, "weights");
  use.gradients = number(bytes, "gradients");
  use.optimizer = number(bytes, "optimizer");
  use.activations = number(bytes, "activations");
  use.buffers = number(bytes, "buffers");
  use.total = number(bytes, "total");
  use.capacity = number(bytes, "capacity");
  const json& fits = at(bytes, "fits");
  use.fits = !fits.is_boolean() || fits.get<bool>();
  return use;
}

CostFigures cost_of(const json& result) {
  CostFigures cost;
  const json &currency = at(result, "currency"), &target = at(result, "target");
  if (currency.is_string()) cost.currency = currency.get<std::string>();
  cost.step_money = number(result, "cost_per_step");
  cost.step_energy_wh = number(result, "energy_wh_per_step");
  if (!target.is_object()) return cost;
  cost.samples = number(target, "samples");
  cost.tokens = number(target, "tokens");
  cost.seconds = number(target, "seconds");
  cost.device_hours = number(target, "device_hours");
  cost.money = number(target, "cost");
  cost.energy_kwh = number(target, "energy_kwh");
  return cost;
}

CostFigures cost_of(const Scenario& s, const Metrics& metrics) {
  const RunCost known = run_cost(s, metrics);
  CostFigures cost;
  cost.currency = s.cost.currency;
  cost.step_money = known.step.money.value_or(0);
  cost.step_energy_wh = known.step.energy_wh.value_or(0);
  if (known.training) {
    cost.samples = s.training.target_samples;
    cost.tokens = cost.samples * tokens_per_sample(s.model, s.training.sequence_length);
    cost.seconds = known.training->seconds;
    cost.device_hours = known.training->device_hours;
    cost.money = known.training->money.value_or(0);
    cost.energy_kwh = known.training->energy_kwh.value_or(0);
  }
  if (const auto& price = s.cost.per_device_hour)
    cost.price = fmt::format("{} {} per {} and hour ({}{}{})", with_digits(price->value, 3), cost.currency,
                             device_noun(s.cluster->node().device),
                             kBasisNames[static_cast<std::size_t>(price->basis)],
                             price->source.empty() ? "" : ": ", price->source);
  return cost;
}

void read_result(const json& result, RunFigures& figures) {
  figures.step_time_s = number(result, "step_time_s");
  figures.samples_per_s = number(result, "samples_per_s");
  figures.tokens_per_s = number(result, "tokens_per_s");
  figures.tflops_per_device = number(result, "model_tflops_per_device");
  figures.mfu = number(result, "mfu");
  figures.devices = static_cast<int>(std::clamp(number(result, "devices"), 0.0, 1e9));
  const json& parts = at(result, "breakdown_s");
  add_part(figures, "compute", Kind::compute, number(parts, "compute"));
  add_part(figures, "pipeline bubble", Kind::bubble, number(parts, "pipeline_bubble"));
  add_part(figures, "exposed communication", Kind::communication, number(parts, "exposed_communication"));
  add_part(figures, "waiting for data", Kind::data, number(parts, "data_stall"));
  const double checkpoint_s = number(result, "checkpoint_stall_s");
  if (checkpoint_s > 0) add_part(figures, kCheckpointStall, Kind::waiting, checkpoint_s);
  add_part(figures, kWaiting, Kind::waiting, number(parts, "other") - checkpoint_s);
  figures.memory = memory_of(at(result, "memory_bytes"));
  const json& path = at(result, "critical_path");
  for (const json& segment : at(path, "segments"))
    if (at(segment, "kind").is_string())
      figures.path_by_kind.emplace_back(at(segment, "kind").get<std::string>(), number(segment, "seconds"));
  figures.critical_path = path_sentence(path, figures.path_by_kind, figures.step_time_s);
  figures.rests_on = rests_on_of(at(result, "rests_on"));
  figures.cost = cost_of(result);
}

int rounds_in(TimeRange window, double step_s) {
  const double rounds = step_s > 0 ? std::round(seconds(window.length()) / step_s) : 1;
  return static_cast<int>(std::clamp(rounds, 1.0, 1e6));
}

// Averages over the devices what each did in its entry of `windows`, per step; each instant counts once.
void break_down_rows(const Timeline& timeline, const std::vector<TimeRange>& windows, int steps,
                     RunFigures& figures) {
  std::array<double, kKindNames.size()> by_kind{};
  double length_s = 0, devices = 0;
  for (std::size_t p = 0; p < timeline.processes.size(); ++p) {
    const Process& process = timeline.processes[p];
    if (process.summary_row < 0 || !process.device || windows[p].length() <= 0) continue;
    const double members = std::max(1, process.members);
    devices += members;
    length_s += members * seconds(windows[p].length());
    const Row& row = timeline.rows[static_cast<std::size_t>(process.summary_row)];
    for (SpanId span = timeline.first_after(row, windows[p].begin);
         span < row.last && timeline.spans.begin[span] < windows[p].end; ++span) {
      const Time begin = std::max(timeline.spans.begin[span], windows[p].begin),
                 end = std::min(timeline.spans.end[span], windows[p].end);
      by_kind[static_cast<std::size_t>(timeline.spans.kind[span])] += members * seconds(end - begin);
    }
  }
  if (devices <= 0) return;
  const double share = 1 / (devices * steps);
  figures.devices = static_cast<int>(devices);
  figures.step_time_s = length_s * share;
  const auto part = [&](const char* name, Kind kind) {
    add_part(figures, name, kind, by_kind[static_cast<std::size_t>(kind)] * share);
  };
  part("compute", Kind::compute);
  part("pipeline bubble", Kind::bubble);
  part("exposed communication", Kind::communication);
  part("memory copies", Kind::copy);
  part("waiting for data", Kind::data);
  part("writing checkpoints", Kind::checkpoint);
  part(timeline.writer == Timeline::Writer::rehearse ? kWaiting : "waiting", Kind::waiting);
  part("host only", Kind::host);
  double told_s = 0;
  for (const BreakdownPart& known : figures.breakdown) told_s += known.seconds;
  const double rest_s = figures.step_time_s - told_s;
  if (rest_s > 1e-6 * figures.step_time_s) add_part(figures, "unrecorded time", Kind::other, rest_s);
}

void read_spans(const Timeline& timeline, RunFigures& figures) {
  const AnnotatedSteps annotated = annotated_steps(timeline);
  std::vector<TimeRange> windows(timeline.processes.size(), figures.step);
  int steps = 1;
  if (annotated.steps > 0) {
    windows = annotated.windows;
    steps = annotated.steps;
    figures.step = annotated.whole;
    figures.steps = steps;
    figures.rests_on =
        fmt::format("{}{}",
                    steps == 1 ? "one step that the profiler marked"
                               : fmt::format("the mean of {} steps that the profiler marked", steps),
                    annotated.left_out.empty() ? "" : ", without " + annotated.left_out + " (warm-up)");
  } else if (timeline.writer != Timeline::Writer::rehearse) {
    figures.rests_on = "the entire trace: it marks no steps (ProfilerStep#N)";
  }
  break_down_rows(timeline, windows, steps, figures);
  if (figures.step_time_s <= 0) figures.step_time_s = seconds(figures.step.length()) / steps;
}

TimeRange in_timeline(const Timeline& timeline, StepWindow window) {
  const auto time = [&](double s) { return static_cast<Time>(std::llround(s * 1e9)) - timeline.origin; };
  return {time(window.begin_s), time(window.end_s)};
}

}  // namespace

RunFigures figures_of(const Timeline& timeline) {
  RunFigures figures;
  figures.step = {timeline.begin, timeline.end};
  const json other = json_object_in(timeline.other_data);
  const json &result = at(other, "result"), &measured = at(other, "measured");
  const bool asynchronous = at(result, "asynchrony").is_object() && !at(result, "asynchrony").empty();
  if (timeline.writer == Timeline::Writer::rehearse && !asynchronous) {
    const std::optional<int> warmup =
        measured.empty() ? std::nullopt
                         : std::optional<int>(static_cast<int>(number(measured, "warmup_steps")));
    if (const std::optional<TimeRange> step = told_step(timeline, warmup)) figures.step = *step;
  }
  if (number(result, "step_time_s") > 0) {
    read_result(result, figures);
    // Steps after a checkpoint take longer than the mean.
    const double after_checkpoint = number(at(other, "checkpoint_cycle"), "optimizer_steps");
    if (after_checkpoint >= 1)
      figures.steps = static_cast<int>(std::min(after_checkpoint, 1e6));
    else if (!asynchronous)
      figures.steps = rounds_in(figures.step, figures.step_time_s);
  } else {
    read_spans(timeline, figures);
  }
  figures.bottleneck = bottleneck_of(figures);
  return figures;
}

std::shared_ptr<const Judged> judge(RecordedRun run) {
  auto judged = std::make_shared<Judged>();
  if (run.measured) {
    MeasuredFigures figures =
        evaluate_measured(run.trace, run.scenario, run.plan, run.measured->warmup_steps);
    judged->metrics = std::move(figures.metrics);
    judged->path = std::move(figures.path);
    judged->step = std::move(figures.step);
  } else {
    judged->metrics = evaluate(run.trace, run.scenario, run.plan);
    if (!judged->metrics.asynchrony) judged->path = critical_path(run.trace, 0);
    judged->step = run.trace;
  }
  judged->run = std::move(run);
  return judged;
}

RunFigures figures_of(const Timeline& timeline, const Judged& judged) {
  RunFigures figures = figures_of(timeline);
  const Result result = judged.result();
  const Metrics& m = result.metrics;
  figures.step = in_timeline(timeline, last_step(judged.step, 0));
  figures.step_time_s = m.step_time_s;
  figures.steps = rounds_in(figures.step, m.step_time_s);
  figures.devices = m.devices;
  figures.samples_per_s = m.samples_per_s;
  figures.tokens_per_s = m.tokens_per_s;
  figures.tflops_per_device = m.model_tflops_per_device;
  figures.mfu = m.mfu;
  figures.breakdown.clear();
  add_part(figures, "compute", Kind::compute, m.breakdown.compute_s - m.breakdown.slowed_s);
  if (m.breakdown.slowed_s > 0) add_part(figures, kSlowedCompute, Kind::waiting, m.breakdown.slowed_s);
  add_part(figures, "pipeline bubble", Kind::bubble, m.breakdown.pipeline_bubble_s);
  for (const auto& [purpose, exposed_s] : m.breakdown.exposed_s)
    add_part(figures, "exposed " + waiting(purpose), Kind::communication, exposed_s);
  add_part(figures, "waiting for data", Kind::data, m.breakdown.data_stall_s);
  if (m.breakdown.launches_s > 0)
    add_part(figures, "waiting for kernel launches", Kind::waiting, m.breakdown.launches_s);
  if (m.breakdown.checkpoint_s > 0)
    add_part(figures, kCheckpointStall, Kind::waiting, m.breakdown.checkpoint_s);
  if (m.breakdown.process_s > 0) add_part(figures, kProfiledWait, Kind::waiting, m.breakdown.process_s);
  add_part(figures, "waiting for " + waited_for(result.scenario), Kind::waiting, m.breakdown.waiting_s());
  figures.memory = m.memory;
  figures.cost = cost_of(result.scenario, m);
  // A measured run gets no advice: simulated advice cannot be compared with a measurement.
  if (result.measured == nullptr) figures.advice = advice_of(result);
  figures.bottleneck =
      bottleneck_sentence(result, figures.advice.empty() ? AdviceTold::in_sentence : AdviceTold::apart);
  // Prefers the sentence from the trace's result if that also says what would help, because this takes
  // simulations.
  if (!result.path.empty()) {
    if (figures.critical_path.find("would save") == std::string::npos)
      figures.critical_path = critical_path_sentence(result);
    figures.path_by_kind = seconds_by_kind(result.path);
    for (auto& [kind, length] : figures.path_by_kind) length /= result.plan.schedule->optimizer_steps;
  }
  if (result.measured == nullptr) figures.rests_on = in_short(rests_on(result.scenario, result.plan));
  return figures;
}

}  // namespace rehearse::gui
