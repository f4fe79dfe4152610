#include "simulator/trace/step_traffic.hpp"

#include <algorithm>

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

// Calls `take` with the bytes of each message of a worker's op, sent or received, and the links that it
// crosses.
template <class Take>
void each_message(const Trace& trace, int job, const Cluster& cluster, int worker, const Op& op, Take take) {
  const Job& its_job = trace.run.jobs[job];
  const Schedule& schedule = *its_job.phases.back().schedule;
  std::vector<LinkId> route;
  for (const Message& message : op.messages) {
    const double bytes = message.bytes.at(schedule.roles[0], worker);
    for (const int peer : peer_ranks(schedule.roles, 0, message.peer, worker)) {
      const int other = its_job.endpoints[schedule.first_rank(message.peer.role) + peer];
      const int self = its_job.endpoints[worker];
      const bool sends = message.direction == Message::Direction::send;
      route.clear();
      cluster.route(sends ? self : other, sends ? other : self, -1, route);
      take(bytes, route);
    }
  }
}

// Every worker's round has the same bytes, and a step has as many rounds as there are workers.
StepTraffic of_workers(const Trace& trace, int job, const Cluster& cluster,
                       const AsynchronyFigures& figures) {
  const Schedule& schedule = *trace.run.jobs[job].phases.back().schedule;
  StepTraffic traffic;
  for (const AsynchronyFigures::Worker& worker : figures.workers)
    for (const Op& op : schedule.programs[schedule.program_of(0, worker.rank)].ops)
      each_message(trace, job, cluster, worker.rank, op,
                   [&](double bytes, const std::vector<LinkId>&) { traffic.bytes += bytes; });
  const double step_s = schedule.samples / figures.samples_per_s;
  for (const auto& [link, bytes_per_s] : figures.link_bytes_per_s)
    traffic.links.push_back({static_cast<LinkId>(link), bytes_per_s * step_s});
  return traffic;
}

}  // namespace

std::map<int, double> window_traffic(const Trace& trace, int job, const Cluster& cluster,
                                     const AsynchronyFigures& figures) {
  const double begin_s = figures.window_begin_s, end_s = figures.window_end_s;
  std::map<int, double> rates;
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    const RankClass& who = trace.classes[c];
    if (who.job != job || who.role != kWorkers) continue;
    const auto [first, last] = rows_of_class(trace, static_cast<int>(c));
    for (std::size_t row = first; row < last; ++row) {
      const Op& op = trace.op_of(row);
      if (op.kind != OpKind::exchange) continue;
      const double latency_s = trace.spans.latency_s.empty() ? 0 : trace.spans.latency_s[row];
      const double sent_s = std::min(trace.spans.begin_s[row] + latency_s, trace.spans.end_s[row]),
                   arrived_s = trace.spans.end_s[row];
      const double within_s = std::min(arrived_s, end_s) - std::max(sent_s, begin_s);
      if (within_s < 0) continue;
      const double part = arrived_s > sent_s ? within_s / (arrived_s - sent_s) : 1;
      for (const int worker : who.ranks)
        each_message(trace, job, cluster, worker, op, [&](double bytes, const std::vector<LinkId>& route) {
          for (const LinkId link : route) rates[static_cast<int>(link)] += part * bytes / (end_s - begin_s);
        });
    }
  }
  // A transfer that is under way at an end of the window is taken to carry its bytes evenly, although others
  // may have slowed it down at times.
  for (auto& [link, bytes_per_s] : rates)
    bytes_per_s = std::min(bytes_per_s, cluster.bandwidth(static_cast<LinkId>(link)));
  std::erase_if(rates, [](const auto& rate) { return rate.second <= 0; });
  return rates;
}

StepTraffic step_traffic(const Trace& trace, int job, const Cluster& cluster,
                         const std::optional<AsynchronyFigures>& asynchrony) {
  if (asynchrony) return of_workers(trace, job, cluster, *asynchrony);
  const double steps =
      (last_step_number(trace, job) + 1.0) * trace.run.jobs[job].phases.back().schedule->optimizer_steps;
  StepTraffic traffic;
  traffic.bytes = trace.bytes_total / steps;
  for (const LinkUse& use : trace.link_use) traffic.links.push_back({use.link, use.bytes / steps});
  return traffic;
}

}  // namespace rehearse
