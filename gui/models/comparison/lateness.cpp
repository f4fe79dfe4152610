#include "gui/models/comparison/lateness.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "gui/models/comparison/op_totals.hpp"

namespace rehearse::gui {
namespace {

// Ends that are farther apart than both this share of the shorter transfer and the minimum in ns belong to
// two collectives.
constexpr double kTogether = 0.05;
constexpr Time kLeastTogether = 2'000;

// One process's part in a collective.
struct Arrival {
  std::uint32_t name = 0;
  int process = 0;
  Time at = 0, end = 0;
  Time length = 0;  // of the transfer itself
};

// Returns when the rank was ready: before its transfer if it waited for the others first.
Time arrival_of(const Timeline& timeline, const Row& row, SpanId span) {
  const SpanColumns& spans = timeline.spans;
  Time at = spans.begin[span];
  if (spans.ready[span] >= 0) at = std::min(at, spans.ready[span]);
  if (span > row.first) {
    const SpanId before = span - 1;
    const bool waits = spans.kind[before] == Kind::waiting || spans.kind[before] == Kind::bubble;
    if (waits && spans.end[before] == spans.begin[span] && spans.op[before] == spans.op[span])
      at = std::min(at, spans.begin[before]);
  }
  return at;
}

class Finder {
public:
  Finder(const Timeline& timeline, const std::vector<TimeRange>& windows)
      : timeline_(timeline), windows_(windows), late_(timeline.processes.size()) {}

  std::vector<Lateness> find(const std::atomic<bool>& cancelled) {
    collect(cancelled);
    std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) {
      return std::tie(a.name, a.end, a.process) < std::tie(b.name, b.end, b.process);
    });
    std::vector<Arrival> together;
    for (const Arrival& next : arrivals_) {
      if (cancelled) break;
      if (!together.empty() && !belongs(next, together)) {
        judge(together);
        together.clear();
      }
      together.push_back(next);
    }
    judge(together);
    return result();
  }

private:
  void collect(const std::atomic<bool>& cancelled) {
    for (const Row& row : timeline_.rows) {
      const Process& process = timeline_.processes[static_cast<std::size_t>(row.process)];
      if (row.track < 0 || process.summary_row < 0 || !process.device) continue;
      if (cancelled) return;
      const TimeRange window = windows_[static_cast<std::size_t>(row.process)];
      for (SpanId span = timeline_.first_after(row, window.begin);
           span < row.last && timeline_.spans.begin[span] < window.end; ++span)
        if (timeline_.spans.kind[span] == Kind::communication)
          arrivals_.push_back({timeline_.spans.name[span], row.process, arrival_of(timeline_, row, span),
                               timeline_.spans.end[span],
                               timeline_.spans.end[span] - timeline_.spans.begin[span]});
    }
  }

  static bool belongs(const Arrival& next, const std::vector<Arrival>& together) {
    const Arrival& first = together.front();
    const Time apart =
        std::max(kLeastTogether,
                 static_cast<Time>(kTogether * static_cast<double>(std::min(first.length, next.length))));
    return next.name == first.name && next.end - first.end <= apart &&
           std::none_of(together.begin(), together.end(),
                        [&](const Arrival& one) { return one.process == next.process; });
  }

  void judge(std::vector<Arrival>& together) {
    if (together.size() < 2) return;
    std::sort(together.begin(), together.end(),
              [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
    // Pipeline stages arrive at different times by design.
    const auto stage_of = [&](const Arrival& one) -> const std::string& {
      return timeline_.processes[static_cast<std::size_t>(one.process)].stage;
    };
    if (std::any_of(together.begin(), together.end(),
                    [&](const Arrival& one) { return stage_of(one) != stage_of(together.front()); }))
      return;
    const auto members = [&](const Arrival& one) {
      return std::max(1, timeline_.processes[static_cast<std::size_t>(one.process)].members);
    };
    long long ranks = 0, before = 0;
    for (const Arrival& one : together) ranks += members(one);
    const Arrival* median = nullptr;
    for (const Arrival& one : together) {
      before += members(one);
      if (median == nullptr && 2 * before >= ranks) median = &one;
    }
    for (const Arrival& one : together)
      if (one.at > median->at) add(one, *median);
  }

  void add(const Arrival& late, const Arrival& median) {
    const Process& waits = timeline_.processes[static_cast<std::size_t>(median.process)];
    const Row& summary = timeline_.rows[static_cast<std::size_t>(waits.summary_row)];
    auto& lost = lost_[late.process];
    Time at = median.at, sum = 0;
    const auto stands_until = [&](Time until) {
      if (until <= at) return;
      lost.emplace_back(at, until);
      sum += until - at;
    };
    for (SpanId span = timeline_.first_after(summary, median.at);
         span < summary.last && timeline_.spans.begin[span] < late.at; ++span) {
      if (timeline_.spans.kind[span] != Kind::compute) continue;
      stands_until(timeline_.spans.begin[span]);
      at = std::max(at, timeline_.spans.end[span]);
    }
    stands_until(late.at);
    if (sum > 0) at_[late.process][late.name] += sum;
  }

  std::vector<Lateness> result() {
    for (auto& [process, lost] : lost_) {
      Lateness& its = late_[static_cast<std::size_t>(process)];
      std::sort(lost.begin(), lost.end());
      Time told = std::numeric_limits<Time>::min();
      for (const auto& [begin, end] : lost) {
        its.seconds += static_cast<double>(std::max<Time>(0, end - std::max(begin, told))) * 1e-9;
        told = std::max(told, end);
      }
      std::map<std::string, Time> kinds;
      for (const auto& [name, sum] : at_[process]) kinds[kind_of_name(timeline_.strings[name])] += sum;
      Time most = 0;
      for (const auto& [kind, sum] : kinds)
        if (sum > most) {
          most = sum;
          its.at = kind;
        }
    }
    return std::move(late_);
  }

  const Timeline& timeline_;
  const std::vector<TimeRange>& windows_;
  std::vector<Arrival> arrivals_;
  std::map<int, std::vector<std::pair<Time, Time>>> lost_;  // by late process
  std::map<int, std::map<std::uint32_t, Time>> at_;         // by late process and name
  std::vector<Lateness> late_;
};

}  // namespace

std::vector<Lateness> lateness(const Timeline& timeline, const std::vector<TimeRange>& windows,
                               const std::atomic<bool>& cancelled) {
  return Finder(timeline, windows).find(cancelled);
}

}  // namespace rehearse::gui
