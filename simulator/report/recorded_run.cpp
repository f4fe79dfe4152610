#include "simulator/report/recorded_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "models/text/error.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/report/measurement_json.hpp"
#include "simulator/report/report.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

constexpr double kMostMicroseconds = 1e12;  // eleven days: nanoseconds are exact in a double
constexpr int kMostRepeats = 1'000'000, kMostIterations = 1'000'000;

[[noreturn]] void refuse(const std::string& path, const std::string& message) {
  throw InputError({path, 0, 0}, message);
}

// Converts microseconds with three decimals.
long long nanoseconds(const JsonReader& json) {
  return std::llround(json.number(0, kMostMicroseconds) * 1e3);
}
double seconds(long long ns) {
  return static_cast<double>(ns) / 1e9;
}

// Places in the scenario follow the file's name in messages.
Scenario read_scenario_of(const JsonReader& other, const std::string& path) {
  const std::string name = other.at("scenario").text();
  if (!other.has("scenario_text"))
    refuse(path, "otherData.scenario_text is missing: the trace's scenario was not read from a file");
  Scenario scenario = read_scenario_text(other.at("scenario_text").text(), path + " (scenario)");
  scenario.name = name;
  return scenario;
}

class Reader {
public:
  Reader(const nlohmann::json& root, const std::string& path) : root_(root, path), path_(path) {}

  RecordedRun run() {
    root_.object();
    if (!root_.has("otherData") || !root_.at("otherData").has("generator") ||
        root_.at("otherData").at("generator").value() != "rehearse")
      refuse(path_, "is not a trace of Rehearse: otherData.generator is not \"rehearse\"");
    const JsonReader other = root_.at("otherData"), events = root_.at("traceEvents");
    RecordedRun run;
    run.scenario = read_scenario_of(other, path_);
    // Each micro-batch has its own spans; so a file cannot ask for a schedule that is far larger than the
    // file.
    if (static_cast<double>(events.size()) < run.scenario.microbatches)
      refuse(path_, fmt::format("has {} events, fewer than the {} micro-batches of its scenario",
                                events.size(), run.scenario.microbatches));
    run.after_checkpoint = other.has("checkpoint_cycle");
    run.plan =
        run.after_checkpoint
            ? write_schedule(run.scenario, read_cycle(other.at("checkpoint_cycle"), run, events.size()))
            : write_schedule(run.scenario);
    schedule_ = run.plan.schedule.get();
    if (other.has("measured")) run.measured = read_measurement(other.at("measured"));
    read_facts(other.at("trace"), run);
    read_spans(events, run.trace);
    if (!run.trace.job_failed.front()) check_complete(run.trace);
    return run;
  }

private:
  static CheckpointCycle read_cycle(const JsonReader& cycle, const RecordedRun& run, std::size_t events) {
    const auto most = static_cast<std::int64_t>(events) / std::max(1, run.scenario.microbatches);
    CheckpointCycle read;
    read.rounds = static_cast<int>(cycle.at("rounds").integer(1, std::clamp<std::int64_t>(most, 1, 10'000)));
    read.repeats = cycle.at("repeats").boolean();
    read.written_share = cycle.at("written_share").number(0, 1);
    return read;
  }

  void read_facts(const JsonReader& facts, RecordedRun& run) {
    Trace& trace = run.trace;
    Phase phase;
    phase.schedule = run.plan.schedule;
    phase.repeats = static_cast<int>(facts.at("repeats").integer(1, kMostRepeats));
    steps_ =
        schedule_->asynchrony ? std::max(phase.repeats, schedule_->asynchrony->most_rounds) : phase.repeats;
    trace.run.jobs.push_back({run.scenario.name, {phase}, run.plan.endpoints});

    const JsonReader classes = facts.at("classes");
    std::vector<bool> seen(static_cast<std::size_t>(schedule_->ranks()), false);
    for (std::size_t c = 0; c < classes.size(); ++c)
      trace.classes.push_back(read_class(classes.item(c), seen));
    const auto missing = std::find(seen.begin(), seen.end(), false);
    if (missing != seen.end())
      classes.refuse(fmt::format("without rank {} of {}", missing - seen.begin(), seen.size()),
                     "every rank in one class");

    latency_known_ = facts.at("latency_known").boolean();
    const JsonReader links = facts.at("link_use");
    for (std::size_t i = 0; i < links.size(); ++i) {
      const JsonReader use = links.item(i), link = use.at("link");
      // A direction of some cables has a name that also refers to both directions.
      const Cluster& cluster = *run.scenario.cluster;
      const std::vector<LinkId> found = cluster.find_links(link.text());
      const auto id = std::find_if(found.begin(), found.end(),
                                   [&](LinkId one) { return cluster.link_name(one) == link.text(); });
      if (id == found.end()) link.refuse("one direction of a link of the cluster");
      trace.link_use.push_back({*id, static_cast<int>(use.at("members").integer(1, 1'000'000'000)),
                                use.at("bytes").number(0, 1e30)});
    }
    trace.bytes_total = facts.at("bytes").number(0, 1e30);
    const JsonReader engine = facts.at("engine"), failures = facts.at("failures");
    trace.engine.fidelity = engine.at("fidelity").text();
    trace.engine.classes = static_cast<int>(engine.at("classes").integer(0, 1'000'000'000));
    trace.engine.events = engine.at("events").integer(0, INT64_MAX);
    for (std::size_t i = 0; i < failures.size(); ++i) trace.failures.push_back(failures.item(i).text());
    trace.job_failed = {!trace.failures.empty()};
  }

  RankClass read_class(const JsonReader& json, std::vector<bool>& seen) {
    RankClass who;
    who.role = static_cast<int>(json.at("role").integer(0, static_cast<int>(schedule_->roles.size()) - 1));
    const int first = schedule_->first_rank(who.role), size = schedule_->roles[who.role].size();
    const JsonReader program = json.at("program"), ranges = json.at("ranks");
    who.phase_program =
        static_cast<int>(program.integer(0, static_cast<int>(schedule_->programs.size()) - 1));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const JsonReader range = ranges.item(i);
      if (range.size() != 2) range.refuse("two ranks, the first and the last");
      const auto from = static_cast<int>(range.item(0).integer(0, size - 1)),
                 to = static_cast<int>(range.item(1).integer(from, size - 1));
      for (int rank = from; rank <= to; ++rank) {
        if (seen[first + rank])
          range.refuse(fmt::format("rank {} a second time", rank), "every rank in one class");
        seen[first + rank] = true;
        if (schedule_->program_of(who.role, rank) != who.phase_program)
          program.refuse(fmt::format("{}, but rank {} runs program {}", who.phase_program, rank,
                                     schedule_->program_of(who.role, rank)),
                         "the program of the schedule");
        who.ranks.push_back(rank);
      }
    }
    if (who.ranks.empty()) ranges.refuse("at least one rank");
    return who;
  }

  void read_spans(const JsonReader& events, Trace& trace) {
    // Other programs can save events in another order; rows are ordered by class and stream, then as in the
    // file.
    std::vector<std::tuple<int, int, std::size_t>> rows;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const nlohmann::json& event = events.value()[i];
      const auto phase = event.is_object() ? event.find("ph") : event.end();
      if (!event.is_object()) events.item(i).object();
      if (phase == event.end() || *phase != "X") continue;
      const JsonReader json = events.item(i);
      const auto c = static_cast<int>(json.at("pid").integer(1, static_cast<int>(trace.classes.size()))) - 1;
      if (json.has("cat") && json.at("cat").value() == kKernelCategory) {
        read_kernel(json, c, trace);
        continue;
      }
      const Program& program = schedule_->programs[trace.classes[c].phase_program];
      const auto stream =
          static_cast<int>(json.at("tid").integer(1, static_cast<int>(program.streams.size()))) - 1;
      rows.emplace_back(c, stream, i);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    });
    for (const auto& [c, stream, i] : rows) read_span(events.item(i), c, stream, trace);
    std::vector<double>& slowed_s = trace.spans.slowed_s;
    if (std::all_of(slowed_s.begin(), slowed_s.end(), [](double s) { return s == 0; })) slowed_s.clear();
  }

  void read_kernel(const JsonReader& json, int c, Trace& trace) const {
    constexpr int kMany = 1'000'000'000;
    const Program& program = schedule_->programs[trace.classes[c].phase_program];
    const JsonReader args = json.at("args");
    KernelSpan kernel;
    kernel.name = json.at("name").text();
    kernel.stream = static_cast<int>(args.at("stream").integer(0, kMany));
    kernel.correlation = args.at("correlation").integer(0, INT64_MAX);
    if (args.has("launched_by")) {
      kernel.op = static_cast<int>(
          args.at("launched_by").integer(0, static_cast<std::int64_t>(program.ops.size()) - 1));
      kernel.step = static_cast<int>(args.at("step").integer(0, steps_ - 1));
    }
    const long long begin_ns = nanoseconds(json.at("ts"));
    kernel.begin_s = seconds(begin_ns);
    kernel.end_s = seconds(begin_ns + nanoseconds(json.at("dur")));
    trace.kernels.resize(trace.classes.size());
    trace.kernels[static_cast<std::size_t>(c)].push_back(std::move(kernel));
  }

  void read_span(const JsonReader& json, int c, int stream, Trace& trace) {
    const RankClass& who = trace.classes[c];
    const Program& program = schedule_->programs[who.phase_program];
    const JsonReader args = json.at("args");
    const auto number =
        static_cast<int>(args.at("op").integer(0, static_cast<std::int64_t>(program.ops.size()) - 1));
    const Op& op = program.ops[number];
    const std::string name = json.at("name").text();
    if (name != op.name || op.stream != stream)
      json.refuse(fmt::format("{} on stream {}", in_quotes(name), stream),
                  fmt::format("op {} of \"{}\" as its scenario's schedule has it, \"{}\" on stream {}",
                              number, program.name, op.name, op.stream));
    Spans& spans = trace.spans;
    spans.rank_class.push_back(c);
    spans.phase.push_back(0);
    spans.step.push_back(static_cast<int>(args.at("step").integer(0, steps_ - 1)));
    spans.op.push_back(number);
    spans.iteration.push_back(
        args.has("iteration") ? static_cast<int>(args.at("iteration").integer(0, kMostIterations)) : 0);
    const JsonReader ready = args.at("ready_us");
    const long long begin_ns = nanoseconds(json.at("ts")), ready_ns = nanoseconds(ready);
    if (ready_ns > begin_ns) ready.refuse("a time no later than the span's start, ts");
    spans.ready_s.push_back(seconds(ready_ns));
    spans.begin_s.push_back(seconds(begin_ns));
    spans.end_s.push_back(seconds(begin_ns + nanoseconds(json.at("dur"))));
    if (latency_known_)
      spans.latency_s.push_back(args.has("latency_us") ? seconds(nanoseconds(args.at("latency_us"))) : 0);
    spans.slowed_s.push_back(args.has("slowed_us") ? seconds(nanoseconds(args.at("slowed_us"))) : 0);
    spans.status.push_back(static_cast<Status>(args.at("status").choice(kStatusNames)));
    spans.sender.push_back(
        args.has("sender") ? static_cast<int>(args.at("sender").integer(0, schedule_->ranks() - 1)) : -1);
    trace.end_s = std::max(trace.end_s, spans.end_s.back());
  }

  // Checks that every class has every op once in every step. If ops repeat, checks that server 0 has sent the
  // weights from which its workers continue.
  void check_complete(const Trace& trace) const {
    const Spans& spans = trace.spans;
    if (schedule_->asynchrony) {
      check_answers(trace);
      return;
    }
    if (schedule_->has_control_ops()) return;
    for (std::size_t c = 0; c < trace.classes.size(); ++c) {
      const Program& program = schedule_->programs[trace.classes[c].phase_program];
      const auto [first, last] = rows_of_class(trace, static_cast<int>(c));
      std::vector<std::pair<int, int>> found;  // step, op
      for (std::size_t row = first; row < last; ++row) found.emplace_back(spans.step[row], spans.op[row]);
      std::sort(found.begin(), found.end());
      std::size_t next = 0;
      for (int step = 0; step < steps_; ++step)
        for (int op = 0; op < static_cast<int>(program.ops.size()); ++op, ++next) {
          if (next < found.size() && found[next] == std::pair(step, op)) continue;
          const bool twice = next > 0 && next < found.size() && found[next] == found[next - 1];
          refuse(path_, twice ? fmt::format("class {} has op {} of step {} twice", c, found[next].second,
                                            found[next].first)
                              : fmt::format("class {} has no span of op {}, \"{}\", in step {} of {}", c, op,
                                            program.ops[op].name, step, steps_));
        }
      if (next < found.size())
        refuse(path_,
               fmt::format("class {} has op {} of step {} twice", c, found[next].second, found[next].first));
    }
  }

  void check_answers(const Trace& trace) const {
    const Asynchrony& how = *schedule_->asynchrony;
    std::vector<std::tuple<std::size_t, int>> sent, applied;  // worker, round
    for (std::size_t row = 0; row < trace.spans.size(); ++row) {
      const RankClass& who = trace.classes[trace.spans.rank_class[row]];
      if (who.role != how.server_role || who.ranks.front() != 0) continue;
      for (std::size_t w = 0; w < how.applies.size(); ++w) {
        if (how.sends[w] == trace.spans.op[row]) sent.emplace_back(w, trace.spans.iteration[row]);
        if (how.applies[w] == trace.spans.op[row]) applied.emplace_back(w, trace.spans.iteration[row]);
      }
    }
    std::sort(sent.begin(), sent.end());
    for (const auto& [worker, round] : applied)
      if (round > 0 && !std::binary_search(sent.begin(), sent.end(), std::tuple(worker, round - 1)))
        refuse(path_,
               fmt::format("server 0 applies round {} of worker {} without having sent it the weights of "
                           "round {}",
                           round, worker, round - 1));
  }

  JsonReader root_;
  const std::string& path_;
  const Schedule* schedule_ = nullptr;
  int steps_ = 1;  // number of steps to which spans can belong
  bool latency_known_ = false;
};

}  // namespace

void write_run(const RecordedRun& run, const std::string& path) {
  const MeasuredFigures figures =
      evaluate_measured(run.trace, run.scenario, run.plan, run.measured->warmup_steps);
  // The path's rows are those of the cut trace, in the order of the complete trace's rows.
  std::vector<std::size_t> whole;
  for (std::size_t row = 0; row < run.trace.spans.size(); ++row)
    if (figures.times.median_step < 0 || run.trace.spans.step[row] <= figures.times.median_step)
      whole.push_back(row);
  Result result{run.scenario, run.plan, run.trace, figures.metrics, figures.path, {}, &*run.measured};
  for (PathSegment& segment : result.path)
    if (segment.row < whole.size()) segment.row = whole[segment.row];
  write_chrome_trace(result, path);
}

RecordedRun parse_run(std::string_view json, const std::string& path) {
  const nlohmann::json root = parse_json(json, path);
  return Reader(root, path).run();
}

RecordedRun read_run(const std::string& path) {
  return parse_run(read_packed_file(path, "trace"), path);
}

}  // namespace rehearse
