// Merges the ranks of one job into one timeline.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "gui/models/timeline/rank_kinds.hpp"
#include "gui/models/trace/timeline_layout.hpp"
#include "gui/models/trace/trace_file.hpp"
#include "simulator/report/json_reader.hpp"

namespace rehearse::gui {
namespace {

constexpr Time kYear = 31'557'600'000'000'000;

// Returns time 0 of the timeline on its machine's clock; nullopt if the file does not give it.
std::optional<Time> clock_of(const Timeline& timeline) {
  const auto json = json_object_in(timeline.metadata);
  if (json.contains("baseTimeNanoseconds") && json["baseTimeNanoseconds"].is_number_integer()) {
    const auto base = json["baseTimeNanoseconds"].get<Time>();
    if (base > kYear && base < 150 * kYear && timeline.origin < 150 * kYear) return base + timeline.origin;
  }
  if (timeline.origin > kYear) return timeline.origin;  // time since 1970
  return std::nullopt;
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  std::vector<T>().swap(from);
}

// Appends `from`, whose time 0 is the time `shift` of `to`.
void add(Timeline& to, Timeline&& from, Time shift) {
  const auto first_span = static_cast<SpanId>(to.spans.size());
  const int first_row = static_cast<int>(to.rows.size());
  const int first_track = static_cast<int>(to.tracks.size());
  const int first_process = static_cast<int>(to.processes.size());
  std::unordered_map<std::string, std::uint32_t> known;
  for (std::size_t i = 0; i < to.strings.size(); ++i) known.emplace(to.strings[i], i);
  std::vector<std::uint32_t> string(from.strings.size());
  for (std::size_t i = 0; i < from.strings.size(); ++i) {
    const auto [it, is_new] =
        known.try_emplace(from.strings[i], static_cast<std::uint32_t>(to.strings.size()));
    if (is_new) to.strings.push_back(from.strings[i]);
    string[i] = it->second;
  }
  SpanColumns& spans = from.spans;
  const std::size_t count = spans.size();
  for (std::size_t i = 0; i < count; ++i) {
    spans.begin[i] += shift;
    spans.end[i] += shift;
    if (spans.ready[i] >= 0) spans.ready[i] += shift;
    spans.name[i] = string[spans.name[i]];
    spans.algorithm[i] = string[spans.algorithm[i]];
  }
  // Dependencies are numbers within a program. A timeline without dependencies gets empty lists.
  if (!to.first_dependency.empty() || !from.first_dependency.empty()) {
    to.first_dependency.resize(first_span + 1, static_cast<std::uint32_t>(to.dependencies.size()));
    from.first_dependency.resize(count + 1, 0);
    const auto base = static_cast<std::uint32_t>(to.dependencies.size());
    for (std::size_t i = 1; i <= count; ++i) to.first_dependency.push_back(base + from.first_dependency[i]);
    append(to.dependencies, from.dependencies);
  }
  if (!to.first_detail.empty() || !from.first_detail.empty()) {
    to.first_detail.resize(first_span + 1, to.details.size());
    from.first_detail.resize(count + 1, 0);
    const std::uint64_t base = to.details.size();
    for (std::size_t i = 1; i <= count; ++i) to.first_detail.push_back(base + from.first_detail[i]);
    to.details += from.details;
  }
  append(to.spans.begin, spans.begin);
  append(to.spans.end, spans.end);
  append(to.spans.name, spans.name);
  append(to.spans.kind, spans.kind);
  append(to.spans.pass, spans.pass);
  append(to.spans.microbatch, spans.microbatch);
  append(to.spans.step, spans.step);
  append(to.spans.op, spans.op);
  append(to.spans.algorithm, spans.algorithm);
  append(to.spans.members, spans.members);
  append(to.spans.bytes, spans.bytes);
  append(to.spans.flops, spans.flops);
  append(to.spans.ready, spans.ready);
  append(to.spans.critical, spans.critical);
  for (Row row : from.rows) {
    row.process += first_process;
    if (row.track >= 0) row.track += first_track;
    row.first += first_span;
    row.last += first_span;
    to.rows.push_back(row);
  }
  for (Track& track : from.tracks) {
    track.process += first_process;
    track.first_row += first_row;
    track.last_row += first_row;
    to.tracks.push_back(std::move(track));
  }
  for (Process& process : from.processes) {
    process.first_track += first_track;
    process.last_track += first_track;
    if (process.summary_row >= 0) process.summary_row += first_row;
    process.sort_index = static_cast<std::int64_t>(to.processes.size());
    to.processes.push_back(std::move(process));
  }
  for (Counter& counter : from.counters) {
    if (counter.process >= 0) counter.process += first_process;
    for (Time& time : counter.time) time += shift;
    to.counters.push_back(std::move(counter));
  }
  for (const Flow& flow : from.flows) to.flows.push_back({flow.from + first_span, flow.to + first_span});
  to.end = std::max(to.end, from.end + shift);
}

}  // namespace

Timeline merged(std::vector<Timeline> ranks) {
  if (ranks.empty()) return {};
  struct Part {
    int rank = -1;
    std::optional<Time> clock;
    Timeline timeline;
  };
  std::vector<Part> parts;
  for (Timeline& each : ranks) {
    const int rank = rank_of(each).rank;
    const std::optional<Time> clock = clock_of(each);
    parts.push_back({rank, clock, std::move(each)});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
  if (parts.size() == 1) return std::move(parts.front().timeline);

  Time first = std::numeric_limits<Time>::max(), last = std::numeric_limits<Time>::min(), longest = 0;
  bool shared = true;
  for (const Part& part : parts) {
    shared = shared && part.clock.has_value();
    first = std::min(first, part.clock.value_or(0));
    last = std::max(last, part.clock.value_or(0));
    longest = std::max(longest, part.timeline.end);
  }
  // Clocks that differ by more than a minute plus the length of the trace do not belong to one job.
  constexpr Time kMinute = 60'000'000'000;
  shared = shared && last - first <= longest + kMinute;
  Timeline all;
  all.writer = parts.front().timeline.writer;
  all.metadata = parts.front().timeline.metadata;
  all.other_data = parts.front().timeline.other_data;
  all.origin = shared ? parts.front().timeline.origin - (*parts.front().clock - first) : 0;
  if (!shared)
    all.problems.emplace_back("the traces of the ranks have no common clock: each begins at time 0");
  for (std::size_t p = 0; p < parts.size(); ++p) {
    Part& part = parts[p];
    const std::string name =
        part.rank >= 0 ? fmt::format("rank {}", part.rank) : fmt::format("trace {}", p + 1);
    for (Process& process : part.timeline.processes) {
      const std::string told = name + ", ";
      if (process.name.rfind(told, 0) == 0) process.name.erase(0, told.size());
      process.name = name + ": " + process.name;
    }
    for (const std::string& problem : part.timeline.problems) all.problems.push_back(name + ": " + problem);
    const Time shift = shared ? *part.clock - first : 0;
    add(all, std::move(part.timeline), shift);
  }
  index_flows(all);
  find_kinds(all);
  return all;
}

}  // namespace rehearse::gui
