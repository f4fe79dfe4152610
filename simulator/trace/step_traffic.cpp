#include "simulator/trace/step_traffic.hpp"

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

StepTraffic of_workers(const Trace& trace, int job, const Cluster& cluster,
                       const AsynchronyFigures& figures) {
  const Job& its_job = trace.run.jobs[job];
  const Schedule& schedule = *its_job.phases.back().schedule;
  const double step_s = schedule.samples / figures.samples_per_s;
  StepTraffic traffic;
  std::vector<double> load(static_cast<std::size_t>(cluster.links()), 0);
  std::vector<LinkId> route;
  for (const AsynchronyFigures::Worker& worker : figures.workers) {
    const double rounds = worker.rounds_per_s * step_s;
    for (const Op& op : schedule.programs[schedule.program_of(0, worker.rank)].ops)
      for (const Message& message : op.messages) {
        const double bytes = message.bytes.at(schedule.roles[0], worker.rank);
        for (const int peer : peer_ranks(schedule.roles, 0, message.peer, worker.rank)) {
          const int other = its_job.endpoints[schedule.first_rank(message.peer.role) + peer];
          const int self = its_job.endpoints[worker.rank];
          const bool sends = message.direction == Message::Direction::send;
          route.clear();
          cluster.route(sends ? self : other, sends ? other : self, -1, route);
          for (const LinkId link : route) load[link] += rounds * bytes;
          // Every worker's round has the same bytes, and a step has as many rounds as there are workers.
          traffic.bytes += bytes;
        }
      }
  }
  for (std::size_t link = 0; link < load.size(); ++link)
    if (load[link] > 0) traffic.links.push_back({static_cast<LinkId>(link), load[link]});
  return traffic;
}

}  // namespace

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
