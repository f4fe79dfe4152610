// Writes the timeline in the Chrome Trace Event format, which Perfetto opens. Writes it event by event,
// because a trace can be far larger than a document in memory could be.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "simulator/report/json.hpp"
#include "simulator/report/measurement_json.hpp"
#include "simulator/report/packed_output.hpp"
#include "simulator/report/rank_names.hpp"
#include "simulator/trace/flows.hpp"
#include "simulator/trace/link_timeline.hpp"
#include "simulator/trace/memory_timeline.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

constexpr std::size_t kLinks = 4;  // number of busiest links with a counter
constexpr std::size_t kLinkBins = 400;
constexpr int kLinkPid = 0;  // classes have 1, 2, ...

std::string quoted(const std::string& text) {
  return json_text(nlohmann::ordered_json(text));
}

// The format counts in microseconds; rounding to whole nanoseconds keeps neighbours from overlapping.
long long nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}
std::string microseconds(long long ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

class Writer {
public:
  Writer(const Result& result, PackedOutput& sink)
      : result_(result), trace_(result.checkpoint ? result.checkpoint->trace : result.trace), out_(sink) {
    const bool other_path = result.checkpoint && !result.path.empty();
    for (const PathSegment& segment : other_path ? critical_path(trace_, 0) : result.path)
      critical_.insert(segment.row);
  }

  void run() {
    out_.print("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    names();
    for (std::size_t row = 0; row < trace_.spans.size(); ++row) span(row);
    kernels();
    arrows();
    memory_counters();
    link_counters();
    out_.print("\n],\"otherData\":{}}}\n", json_text(other_data()));
  }

private:
  nlohmann::ordered_json other_data() const {
    nlohmann::ordered_json other;
    other["generator"] = "rehearse";
    other["scenario"] = result_.scenario.name;
    if (!result_.scenario.text.empty()) other["scenario_text"] = result_.scenario.text;
    if (result_.measured != nullptr) {
      other["measured"] = to_json(*result_.measured);
      other["measured"]["step_times"] = to_json(step_times(trace_, 0, result_.measured->warmup_steps));
    }
    const std::vector<Job>& jobs = trace_.run.jobs;
    if (jobs.size() == 1 && jobs.front().phases.size() == 1) other["trace"] = facts(jobs.front());
    if (result_.checkpoint) {
      const CheckpointCycle& cycle = result_.checkpoint->cycle;
      other["checkpoint_cycle"] = {{"rounds", cycle.rounds},
                                   {"repeats", cycle.repeats},
                                   {"written_share", cycle.written_share},
                                   {"optimizer_steps", result_.checkpoint->plan.schedule->optimizer_steps}};
    }
    other["result"] = to_json(result_);
    if (result_.measured != nullptr)
      for (const char* of_predictions : {"engine", "rests_on"}) other["result"].erase(of_predictions);
    return other;
  }

  // Returns facts that the events do not contain.
  nlohmann::ordered_json facts(const Job& job) const {
    nlohmann::ordered_json json;
    json["repeats"] = job.phases.front().repeats;
    json["classes"] = nlohmann::ordered_json::array();
    for (const RankClass& who : trace_.classes) {
      auto ranges = nlohmann::ordered_json::array();  // ranges of ranks: first, last
      for (const int rank : who.ranks) {
        if (!ranges.empty() && ranges.back()[1] == rank - 1)
          ranges.back()[1] = rank;
        else
          ranges.push_back({rank, rank});
      }
      json["classes"].push_back({{"role", who.role}, {"program", who.phase_program}, {"ranks", ranges}});
    }
    json["latency_known"] = !trace_.spans.latency_s.empty();
    json["link_use"] = nlohmann::ordered_json::array();
    for (const LinkUse& use : trace_.link_use)
      json["link_use"].push_back({{"link", result_.scenario.cluster->link_name(use.link)},
                                  {"members", use.members},
                                  {"bytes", use.bytes}});
    json["bytes"] = trace_.bytes_total;
    json["engine"] = {{"fidelity", trace_.engine.fidelity},
                      {"classes", trace_.engine.classes},
                      {"events", trace_.engine.events}};
    json["failures"] = trace_.failures;
    return json;
  }

  void begin_event() {
    if (!first_) out_.print(",\n");
    first_ = false;
  }

  void name(const char* what, int pid, int tid, const std::string& text) {
    begin_event();
    out_.print(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, pid, tid,
               quoted(text));
  }

  // Returns an argument for processes of a pipeline stage.
  std::string stage_text(std::size_t rank_class) const {
    const int stage = class_stage(trace_, static_cast<int>(rank_class));
    return stage < 0 ? "" : fmt::format(R"(,"stage":{})", stage);
  }

  void names() {
    for (std::size_t c = 0; c < trace_.classes.size(); ++c) {
      const RankClass& who = trace_.classes[c];
      const int pid = static_cast<int>(c) + 1;
      begin_event();
      out_.print(
          R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{},"role":{},"ranks":{}{}}}}})",
          pid, quoted(class_name(trace_, static_cast<int>(c))),
          quoted(class_role(trace_, static_cast<int>(c)).name), who.ranks.size(), stage_text(c));
      begin_event();
      out_.print(R"({{"ph":"M","name":"process_sort_index","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
                 pid, pid);
      // Considers all phases, because a later one can have more streams.
      std::vector<std::string> streams;
      for (const Phase& phase : trace_.run.jobs[who.job].phases) {
        const int program = phase.schedule->program_of(who.role, who.ranks.front());
        if (program < 0) continue;
        const auto& its_streams = phase.schedule->programs[program].streams;
        for (std::size_t s = streams.size(); s < its_streams.size(); ++s) streams.push_back(its_streams[s]);
      }
      for (std::size_t s = 0; s < streams.size(); ++s)
        name("thread_name", pid, static_cast<int>(s) + 1, streams[s]);
    }
  }

  void span(std::size_t row) {
    const Spans& spans = trace_.spans;
    const Op& op = trace_.op_of(row);
    const RankClass& who = trace_.classes[spans.rank_class[row]];
    const Role& role = schedule_of(trace_, row).roles[who.role];
    const int rank = who.ranks.front();
    const long long begin = nanoseconds(spans.begin_s[row]);
    const long long duration = std::max(0LL, nanoseconds(spans.end_s[row]) - begin);
    begin_event();
    out_.print(
        R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"op":{},"kind":"{}")",
        quoted(op.name), kPassNames[static_cast<std::size_t>(op.pass)], spans.rank_class[row] + 1,
        op.stream + 1, microseconds(begin), microseconds(duration), spans.op[row],
        op.kind == OpKind::collective ? kCollectiveNames[static_cast<std::size_t>(op.collective.kind)]
                                      : kOpKindNames[static_cast<std::size_t>(op.kind)]);
    if (op.purpose != Purpose::none) out_.print(R"(,"purpose":"{}")", waiting(op.purpose));
    if (op.kind == OpKind::host)
      out_.print(R"(,"action":"{}")", kHostActionNames[static_cast<std::size_t>(op.host_action)]);
    if (op.host_bytes > 0) out_.print(R"(,"bytes":{})", op.host_bytes);
    if (op.first_layer >= 0) {
      if (op.last_layer > op.first_layer) {
        out_.print(R"(,"layer":"{}-{}")", op.first_layer, op.last_layer);
      } else {
        out_.print(R"(,"layer":"{}")", op.first_layer);
      }
    }
    if (op.microbatch >= 0) out_.print(R"(,"microbatch":{})", op.microbatch);
    if (op.kind == OpKind::collective) {
      out_.print(R"(,"bytes":{},"algorithm":"{}","members":{})", op.collective.bytes.at(role, rank),
                 kAlgorithmNames[static_cast<std::size_t>(op.collective.used_algorithm())],
                 group_size(role, op.collective.group));
    } else if (op.kind == OpKind::exchange) {
      out_.print(R"(,"bytes":{})", exchange_bytes(row, op, who, role));
    } else if (op.kind == OpKind::compute && op.work >= 0) {
      const Work& work = schedule_of(trace_, row).works[op.work];
      out_.print(R"(,"flops":{})", work.model_flops + work.extra_flops);
    }
    out_.print(R"(,"step":{},"ready_us":{})", spans.step[row], microseconds(nanoseconds(spans.ready_s[row])));
    if (spans.iteration[row] != 0) out_.print(R"(,"iteration":{})", spans.iteration[row]);
    if (spans.sender[row] >= 0) out_.print(R"(,"sender":{})", spans.sender[row]);
    if (!spans.slowed_s.empty() && spans.slowed_s[row] > 0)
      out_.print(R"(,"slowed_us":{})", microseconds(nanoseconds(spans.slowed_s[row])));
    if (!spans.latency_s.empty() && spans.latency_s[row] != 0)
      out_.print(R"(,"latency_us":{})", microseconds(nanoseconds(spans.latency_s[row])));
    out_.print(R"(,"deps":[)");
    for (std::size_t i = 0; i < op.after.size(); ++i) out_.print("{}{}", i == 0 ? "" : ",", op.after[i].op);
    out_.print(R"(],"status":"{}"{}}}}})", kStatusNames[static_cast<std::size_t>(spans.status[row])],
               critical_.count(row) > 0 ? R"(,"critical":true)" : "");
  }

  // Writes tracks after those of the program's streams, one for each GPU stream. Other programs know the
  // category and the arguments `stream` and `correlation` from PyTorch's profiler.
  void kernels() {
    for (std::size_t c = 0; c < trace_.kernels.size(); ++c) {
      const RankClass& who = trace_.classes[c];
      const int pid = static_cast<int>(c) + 1;
      const auto streams = trace_.run.jobs[who.job]
                               .phases.front()
                               .schedule->programs[static_cast<std::size_t>(who.phase_program)]
                               .streams.size();
      std::map<int, int> tracks;  // by stream of the GPU
      for (const KernelSpan& kernel : trace_.kernels[c]) tracks.emplace(kernel.stream, 0);
      int next = static_cast<int>(streams) + 1;
      for (auto& [stream, track] : tracks) {
        track = next++;
        name("thread_name", pid, track, fmt::format("kernels of GPU stream {}", stream));
      }
      for (const KernelSpan& kernel : trace_.kernels[c]) {
        const long long begin = nanoseconds(kernel.begin_s);
        begin_event();
        out_.print(
            R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"kind":"{}","stream":{},"correlation":{})",
            quoted(kernel.name), kKernelCategory, pid, tracks[kernel.stream], microseconds(begin),
            microseconds(std::max(0LL, nanoseconds(kernel.end_s) - begin)), kKernelCategory, kernel.stream,
            kernel.correlation);
        if (kernel.op >= 0) out_.print(R"(,"launched_by":{},"step":{})", kernel.op, kernel.step);
        out_.print("}}}}");
      }
    }
  }

  // Returns the bytes that the rank sends, or, if it sends none, those that it receives.
  double exchange_bytes(std::size_t row, const Op& op, const RankClass& who, const Role& role) const {
    double sent = 0, received = 0;
    for (const Message& message : op.messages) {
      const double each = message.bytes.at(role, who.ranks.front());
      const bool one = message.peer.kind == Peer::Kind::any || message.peer.kind == Peer::Kind::sender;
      const std::size_t peers =
          one ? 1
              : peer_ranks(schedule_of(trace_, row).roles, who.role, message.peer, who.ranks.front()).size();
      (message.direction == Message::Direction::send ? sent : received) += each * static_cast<double>(peers);
    }
    return sent > 0 ? sent : received;
  }

  void arrows() {
    long long id = 0;
    for (const Flow& flow : message_flows(trace_)) {
      ++id;
      const long long sent = nanoseconds(trace_.spans.begin_s[flow.from]);
      // An arrow belongs to the span around its time stamp: the last nanosecond of the receive.
      const long long arrived =
          std::max(nanoseconds(trace_.spans.begin_s[flow.to]), nanoseconds(trace_.spans.end_s[flow.to]) - 1);
      arrow("s", id, flow.from, sent);
      arrow("f", id, flow.to, std::max(sent, arrived));
    }
  }

  void arrow(const char* phase, long long id, std::size_t row, long long ns) {
    begin_event();
    out_.print(R"({{"ph":"{}","bp":"e","id":{},"name":"message","cat":"message","pid":{},"tid":{},"ts":{}}})",
               phase, id, trace_.spans.rank_class[row] + 1, trace_.op_of(row).stream + 1, microseconds(ns));
  }

  void counter(int pid, const std::string& what, const char* unit, long long ns, double value) {
    begin_event();
    out_.print(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"{}":{}}}}})", quoted(what), pid,
               microseconds(ns), unit, value);
  }

  void memory_counters() {
    for (std::size_t c = 0; c < trace_.classes.size(); ++c) {
      const auto [first, last] = rows_of_class(trace_, static_cast<int>(c));
      int steps = 0;
      for (std::size_t row = first; row < last; ++row) steps = std::max(steps, trace_.spans.step[row] + 1);
      const int pid = static_cast<int>(c) + 1;
      for (int step = 0; step < steps; ++step) {
        const MemoryTimeline timeline = memory_timeline(trace_, static_cast<int>(c), step);
        double bytes = 0;
        for (const double persistent : timeline.persistent) bytes += persistent;
        if (step == 0 && (bytes > 0 || !timeline.changes.empty())) counter(pid, "memory", "bytes", 0, bytes);
        for (std::size_t i = 0; i < timeline.changes.size(); ++i) {
          bytes += timeline.changes[i].bytes;
          const long long ns = nanoseconds(timeline.changes[i].time_s);
          const bool more_now =
              i + 1 < timeline.changes.size() && nanoseconds(timeline.changes[i + 1].time_s) == ns;
          if (!more_now) counter(pid, "memory", "bytes", ns, bytes);
        }
      }
    }
  }

  void link_counters() {
    const Cluster& cluster = *result_.scenario.cluster;
    const auto timelines = link_timelines(trace_, cluster, kLinks, kLinkBins);
    if (!timelines.empty()) name("process_name", kLinkPid, 0, "busiest links");
    for (const LinkTimeline& timeline : timelines) {
      const std::string link = cluster.link_name(timeline.link);
      const double width_s = trace_.end_s / static_cast<double>(timeline.bytes_per_s.size());
      double before = -1;
      for (std::size_t bin = 0; bin < timeline.bytes_per_s.size(); ++bin) {
        if (std::abs(timeline.bytes_per_s[bin] - before) <= 1e-9 * std::abs(before)) continue;
        before = timeline.bytes_per_s[bin];
        counter(kLinkPid, link, "bytes_per_s", nanoseconds(static_cast<double>(bin) * width_s), before);
      }
      if (before != 0) counter(kLinkPid, link, "bytes_per_s", nanoseconds(trace_.end_s), 0);
    }
  }

  const Result& result_;
  const Trace& trace_;
  PackedOutput& out_;
  std::set<std::size_t> critical_;  // rows on the critical path
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(const Result& result, const std::string& path) {
  PackedOutput sink(path);
  Writer(result, sink).run();
  sink.close();
}

}  // namespace rehearse
