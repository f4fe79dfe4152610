#include "gui/models/comparison/rank_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "gui/models/comparison/lateness.hpp"
#include "gui/models/timeline/step_windows.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

using Interval = std::pair<Time, Time>;

constexpr double kNamedShare = 0.01;  // of the step
constexpr std::string_view kIdle = "idle";

// Sorts and merges the intervals.
std::vector<Interval> united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> merged;
  for (const Interval& interval : intervals)
    if (!merged.empty() && interval.first <= merged.back().second)
      merged.back().second = std::max(merged.back().second, interval.second);
    else
      merged.push_back(interval);
  return merged;
}

double seconds_of(const std::vector<Interval>& intervals) {
  Time sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return static_cast<double>(sum) * 1e-9;
}

double common_seconds(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Time sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max<Time>(0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return static_cast<double>(sum) * 1e-9;
}

RankPart part_of(Kind kind) {
  switch (kind) {
    case Kind::compute:
      return RankPart::compute;
    case Kind::communication:
      return RankPart::communication;
    case Kind::waiting:
      return RankPart::waiting;
    case Kind::bubble:
      return RankPart::bubble;
    case Kind::data:
      return RankPart::data;
    case Kind::checkpoint:
      return RankPart::checkpoint;
    case Kind::copy:
      return RankPart::copy;
    case Kind::host:
      return RankPart::host;
    case Kind::annotation:
    case Kind::other:
      break;
  }
  return RankPart::idle;
}

// Calls `tell` with each span of the row that overlaps the window, and with the overlap.
template <class Tell>
void for_spans(const Timeline& timeline, const Row& row, TimeRange window, const Tell& tell) {
  for (SpanId span = timeline.first_after(row, window.begin);
       span < row.last && timeline.spans.begin[span] < window.end; ++span)
    tell(span, Interval{std::max(timeline.spans.begin[span], window.begin),
                        std::min(timeline.spans.end[span], window.end)});
}

RankTime times_of(const Timeline& timeline, int p, TimeRange window, int steps) {
  const Process& process = timeline.processes[static_cast<std::size_t>(p)];
  RankTime rank;
  rank.process = p;
  rank.members = std::max(1, process.members);
  rank.name = process.name.substr(0, process.name.rfind(fmt::format(" ({} ranks)", rank.members)));
  std::vector<Interval> computing, transfers;
  std::array<std::vector<Interval>, 3> passes;
  const auto to = [&](RankPart part) -> double& { return rank.seconds[static_cast<std::size_t>(part)]; };
  const Row& summary = timeline.rows[static_cast<std::size_t>(process.summary_row)];
  for_spans(timeline, summary, window, [&](SpanId span, Interval inside) {
    RankPart part = part_of(timeline.spans.kind[span]);
    // In Rehearse's traces, unrecorded time is spent waiting for another rank.
    if (part == RankPart::waiting && timeline.writer != Timeline::Writer::rehearse &&
        timeline.name_of(span) == kIdle)
      part = RankPart::idle;
    to(part) += static_cast<double>(inside.second - inside.first) * 1e-9;
    if (part == RankPart::compute) computing.push_back(inside);
  });
  for (int t = process.first_track; t < process.last_track; ++t) {
    const Track& track = timeline.tracks[static_cast<std::size_t>(t)];
    for (int r = track.first_row; r < track.last_row; ++r)
      for_spans(timeline, timeline.rows[static_cast<std::size_t>(r)], window,
                [&](SpanId span, Interval inside) {
                  if (timeline.spans.kind[span] == Kind::communication) transfers.push_back(inside);
                  const Pass pass = timeline.spans.pass[span];
                  if (timeline.spans.kind[span] != Kind::compute || pass == Pass::none) return;
                  const std::size_t place = pass == Pass::forward ? 0 : pass == Pass::optimizer ? 2 : 1;
                  passes[place].push_back(inside);
                });
  }
  // An instant at which two passes run counts for the first of them.
  std::vector<Interval> told;
  double told_s = 0;
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    told.insert(told.end(), passes[pass].begin(), passes[pass].end());
    told = united(std::move(told));
    const double with_it_s = common_seconds(told, computing);
    rank.seconds[pass] = with_it_s - told_s;
    told_s = with_it_s;
  }
  to(RankPart::compute) = std::max(0.0, to(RankPart::compute) - told_s);
  const std::vector<Interval> transferring = united(std::move(transfers));
  rank.communication_s = seconds_of(transferring);
  rank.hidden_s = common_seconds(transferring, computing);
  const double known_s = rank.step_s(), window_s = static_cast<double>(window.length()) * 1e-9;
  // In Rehearse's traces, a rank that has finished waits for the others.
  const RankPart rest = timeline.writer != Timeline::Writer::rehearse ? RankPart::idle
                        : to(RankPart::bubble) > 0                    ? RankPart::bubble
                                                                      : RankPart::waiting;
  to(rest) += std::max(0.0, window_s - known_s);
  for (double& of_part : rank.seconds) of_part /= steps;
  rank.communication_s /= steps;
  rank.hidden_s /= steps;
  return rank;
}

// The weighted median: the smallest value at which half of the weight is reached.
double median(std::vector<std::pair<double, int>> values) {
  std::sort(values.begin(), values.end());
  long long weight = 0, below = 0;
  for (const auto& [value, of] : values) weight += of;
  for (const auto& [value, of] : values) {
    below += of;
    if (2 * below >= weight) return value;
  }
  return 0;
}

// Capitalizes the name for the beginning of a sentence: "Rank 3", "Stage 2, data 5".
std::string named(const RankTime& rank) {
  std::string name = rank.name.empty() ? "A rank" : rank.name;
  if (name.front() >= 'a' && name.front() <= 'z') name.front() = static_cast<char>(name.front() - 'a' + 'A');
  return rank.members > 1 ? fmt::format("{} ({} ranks)", name, rank.members) : name;
}

std::string straggler_sentence(const Timeline& timeline, const std::vector<RankTime>& ranks) {
  const RankTime *late = nullptr, *slow = nullptr;
  double slow_by_s = 0;
  int number = 0;
  const auto excess_s = [&](const RankTime& rank) {  // its computing time over the median of its role
    const std::string& role = timeline.processes[static_cast<std::size_t>(rank.process)].role;
    std::vector<std::pair<double, int>> alike;
    for (const RankTime& other : ranks)
      if (timeline.processes[static_cast<std::size_t>(other.process)].role == role)
        alike.emplace_back(other.computing_s(), other.members);
    return rank.computing_s() - median(std::move(alike));
  };
  for (const RankTime& rank : ranks) {
    number += rank.members;
    if (late == nullptr || rank.late_s > late->late_s) late = &rank;
  }
  if (late == nullptr || number < 2) return "";
  // In a pipeline the slowest stage sets the pace, although no rank waits for it at a collective.
  std::map<std::string, const RankTime*> stages;
  for (const RankTime& rank : ranks) {
    const std::string& stage = timeline.processes[static_cast<std::size_t>(rank.process)].stage;
    if (stage.empty()) continue;
    const RankTime*& known = stages[stage];
    if (known == nullptr || rank.computing_s() > known->computing_s()) known = &rank;
  }
  if (stages.size() > 1)
    for (const auto& [stage, rank] : stages)
      if (slow == nullptr || rank->computing_s() > slow->computing_s()) slow = rank;
  if (slow != nullptr) slow_by_s = excess_s(*slow);
  const double step_s = late->step_s();
  const rehearse::TimeScale time(step_s);
  if (late->late_s < kNamedShare * step_s && slow_by_s < kNamedShare * step_s)
    return fmt::format("Stragglers: none; no rank keeps others waiting for more than {} of the step.",
                       in_percent(kNamedShare));
  if (slow != nullptr && slow_by_s > late->late_s)
    return fmt::format(
        "Straggler: {} is the slowest stage; it computes {} a step, {} ({}) longer than the median rank.",
        named(*slow), time(slow->computing_s()), time(slow_by_s),
        in_percent(slow_by_s / std::max(1e-12, slow->computing_s() - slow_by_s)));
  std::string text =
      fmt::format("Straggler: {} is late; others wait {} a step ({}) for it, mostly at {}", named(*late),
                  time(late->late_s), in_percent(late->late_s / step_s), late->late_at);
  const double longer_s = excess_s(*late);
  if (longer_s >= kNamedShare * step_s)
    text += fmt::format("; it computes {} longer than the median rank", time(longer_s));
  return text + ".";
}

}  // namespace

const RankPartLook& look_of(RankPart part) {
  static constexpr std::array<RankPartLook, kRankParts> kLooks = {{
      {"forward", "Computing the forward pass", Kind::compute, Pass::forward},
      {"backward", "Computing the backward pass", Kind::compute, Pass::backward},
      {"optimizer", "Computing the optimizer step", Kind::compute, Pass::optimizer},
      {"compute", "Computing; the pass is unknown", Kind::compute, Pass::none},
      {"exposed communication", "Communication that does not overlap with computation", Kind::communication,
       Pass::none},
      {"copies", "Memory copies that do not overlap with other work", Kind::copy, Pass::none},
      {"data", "Waiting for a batch", Kind::data, Pass::none},
      {"checkpoint", "Writing a checkpoint", Kind::checkpoint, Pass::none},
      {"waiting for ranks", "Waiting for slower ranks or servers", Kind::waiting, Pass::none},
      {"pipeline bubble", "Waiting for another stage of the pipeline", Kind::bubble, Pass::none},
      {"host only", "Waiting while only the host works (HTA: host wait)", Kind::host, Pass::none},
      {"idle", "No activity is recorded and the cause is unknown (HTA: other wait)", Kind::other, Pass::none},
  }};
  return kLooks[static_cast<std::size_t>(part)];
}

double RankTime::step_s() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double RankTime::computing_s() const {
  return of(RankPart::forward) + of(RankPart::backward) + of(RankPart::optimizer) + of(RankPart::compute);
}

RankTimes rank_times(const Run& run, const std::atomic<bool>& cancelled) {
  RankTimes found;
  if (!run.timeline) return found;
  const Timeline& timeline = *run.timeline;
  std::vector<TimeRange> windows(timeline.processes.size(), run.figures.step);
  int steps = std::max(1, run.figures.steps);
  if (timeline.writer != Timeline::Writer::rehearse)
    if (AnnotatedSteps marked = annotated_steps(timeline); marked.steps > 0) {
      windows = std::move(marked.windows);
      steps = marked.steps;
    }
  for (std::size_t p = 0; p < timeline.processes.size(); ++p) {
    const Process& process = timeline.processes[p];
    if (process.summary_row < 0 || !process.device || windows[p].length() <= 0) continue;
    if (cancelled) return found;
    found.ranks.push_back(times_of(timeline, static_cast<int>(p), windows[p], steps));
  }
  const std::vector<Lateness> late = lateness(timeline, windows, cancelled);
  for (RankTime& rank : found.ranks) {
    const Lateness& its = late[static_cast<std::size_t>(rank.process)];
    rank.late_s = its.seconds / steps;
    rank.late_at = its.at;
  }
  found.stragglers = straggler_sentence(timeline, found.ranks);
  return found;
}

}  // namespace rehearse::gui
