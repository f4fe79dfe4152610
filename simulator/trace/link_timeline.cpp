#include "simulator/trace/link_timeline.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/trace/link_crossings.hpp"

namespace rehearse {
namespace {

void spread(std::vector<double>& bins, double width_s, double begin_s, double end_s, double bytes) {
  const auto bin_of = [&](double t) {
    return std::min(static_cast<std::size_t>(std::max(t, 0.0) / width_s), bins.size() - 1);
  };
  const std::size_t first = bin_of(begin_s), last = bin_of(end_s);
  for (std::size_t bin = first; bin <= last; ++bin) {
    const double lo = std::max(begin_s, static_cast<double>(bin) * width_s);
    const double hi = std::min(end_s, static_cast<double>(bin + 1) * width_s);
    const double share = end_s > begin_s ? std::max(0.0, hi - lo) / (end_s - begin_s) : 1;
    bins[bin] += bytes * share / width_s;
  }
}

}  // namespace

std::vector<LinkTimeline> link_timelines(const Trace& trace, const Cluster& cluster, std::size_t count,
                                         std::size_t bins) {
  std::vector<LinkUse> busiest;
  for (const LinkUse& use : trace.link_use) {
    if (use.bytes > 0) busiest.push_back(use);
  }
  std::stable_sort(busiest.begin(), busiest.end(), [&](const LinkUse& a, const LinkUse& b) {
    return a.bytes / cluster.bandwidth(a.link) > b.bytes / cluster.bandwidth(b.link);
  });
  if (busiest.size() > count) busiest.resize(count);
  std::vector<LinkTimeline> timelines;
  if (!(trace.end_s > 0)) return timelines;
  for (const LinkUse& use : busiest) timelines.push_back({use.link, std::vector<double>(bins, 0.0)});
  if (timelines.empty()) return timelines;

  std::vector<bool> watched(cluster.links(), false);
  std::map<LinkId, LinkTimeline*> timeline_of;
  for (LinkTimeline& timeline : timelines) {
    watched[timeline.link] = true;
    timeline_of[timeline.link] = &timeline;
  }
  LinkCrossings crossings(trace, cluster, std::move(watched));
  const double width_s = trace.end_s / static_cast<double>(bins);
  for (std::size_t row = 0; row < trace.spans.size(); ++row)
    for (const LinkCrossings::Part& part : crossings.parts(row))
      for (const LinkCrossing& crossing : crossings.crossings(part.pattern))
        spread(timeline_of[crossing.link]->bytes_per_s, width_s, trace.spans.begin_s[row],
               trace.spans.end_s[row], part.bytes * crossing.times);
  return timelines;
}

}  // namespace rehearse
