#include "simulator/trace/link_crossings.hpp"

#include <algorithm>

#include "simulator/collectives/connections.hpp"
#include "simulator/costs/transfer.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse {

LinkCrossings::LinkCrossings(const Trace& trace, const Cluster& cluster, std::vector<bool> watched)
    : trace_(trace), cluster_(cluster), watched_(std::move(watched)) {}

const Communication& LinkCrossings::communication_of(const Schedule& schedule) {
  auto& known = communications_[&schedule];
  if (!known) known = std::make_unique<Communication>(schedule);
  return *known;
}

const std::vector<LinkCrossings::Part>& LinkCrossings::parts(std::size_t row) {
  parts_.clear();
  const Op& op = trace_.op_of(row);
  if (!is_transfer(op)) return parts_;
  const RankClass& who = trace_.classes[trace_.spans.rank_class[row]];
  const Role& role = schedule_of(trace_, row).roles[who.role];
  const int rank = who.ranks.front();
  if (op.kind == OpKind::exchange) {
    for (std::size_t part = 0; part < op.messages.size(); ++part) {
      const Message& message = op.messages[part];
      if (message.direction == Message::Direction::send || message.access.one_sided)
        parts_.push_back({pattern_of(row, static_cast<int>(part)), message.bytes.at(role, rank)});
    }
    return parts_;
  }
  double bytes = op.collective.bytes.at(role, rank);
  // A ring's slot serves several kinds of collectives: its hops' multiples are shares of the bytes that an
  // edge carries; with other algorithms they are shares of the buffer.
  if (op.collective.kind != CollectiveKind::all_to_all && op.collective.used_algorithm() == Algorithm::ring) {
    TransferShape shape;
    shape.ranks = group_size(role, op.collective.group);
    bytes = ring_cost(op.collective.kind, bytes, shape, Protocol::ideal).bytes_per_edge;
  }
  parts_.push_back({pattern_of(row, 0), bytes});
  return parts_;
}

int LinkCrossings::pattern_of(std::size_t row, int part) {
  const int c = trace_.spans.rank_class[row];
  const RankClass& who = trace_.classes[c];
  const Job& job = trace_.run.jobs[who.job];
  const Schedule& schedule = schedule_of(trace_, row);
  const Communication& communication = communication_of(schedule);
  const int first = schedule.first_rank(who.role);
  const int program = communication.program_of_rank(first + who.ranks.front());
  const int slot = communication.slot(program, trace_.spans.op[row], part);
  const auto [known, fresh] = pattern_of_slot_.try_emplace({&schedule, c, slot}, patterns());
  if (!fresh) return known->second;
  Sums sums;
  for (const int rank : who.ranks) {
    if (slot < 0) break;
    for (const int number : communication.at(first + rank, slot)) {
      const Transfer& transfer = communication.transfers[number];
      if (transfer.collective) {
        add_collective(schedule, job, number, communication.slots_of(program)[slot], first + rank, sums);
      } else if (transfer.ranks.front() == first + rank ||
                 communication.slots_of(program)[slot].access.one_sided) {
        add_route(job.endpoints[transfer.ranks[0]], job.endpoints[transfer.ranks[1]], -1, 1, sums);
      }
    }
  }
  std::vector<LinkCrossing>& crossings = patterns_.emplace_back();
  for (const auto& [link, times] : sums) crossings.push_back({link, times});
  return known->second;
}

void LinkCrossings::add_route(Endpoint from, Endpoint to, int rail, double times, Sums& into) {
  route_.clear();
  cluster_.route(from, to, rail, route_);
  for (const LinkId link : route_)
    if (watched_.empty() || watched_[link]) into[link] += times;
}

void LinkCrossings::add_collective(const Schedule& schedule, const Job& job, int number, const Slot& slot,
                                   int rank, Sums& into) {
  const std::vector<int>& ranks = communication_of(schedule).transfers[number].ranks;
  const Endpoint self = job.endpoints[rank];
  if (slot.course() == Course::pairs) {
    const auto member = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    for (const Connection& c : pairs_from(static_cast<int>(member), static_cast<int>(ranks.size())))
      add_route(self, job.endpoints[ranks[c.to]], c.rail, 1, into);
    return;
  }
  const auto [it, fresh] = hops_.try_emplace({&schedule, number, slot.collective.channels});
  if (fresh) it->second = hops_of(slot.collective, ranks, job);
  for (const Hop& hop : it->second[rank]) add_route(self, hop.to, hop.rail, hop.times, into);
}

// Returns where each rank of a collective sends.
std::unordered_map<int, std::vector<LinkCrossings::Hop>> LinkCrossings::hops_of(const Collective& how,
                                                                                const std::vector<int>& ranks,
                                                                                const Job& job) const {
  std::vector<Endpoint> members;
  for (const int rank : ranks) members.push_back(job.endpoints[rank]);
  const CollectivePlan plan = collective_plan(how.used_algorithm(), cluster_, members, how.channels);
  const std::vector<Connection> connections = connections_of(course_of(how.kind), plan);
  const bool ring = how.used_algorithm() == Algorithm::ring;
  const std::vector<double> shares = ring ? std::vector<double>() : connection_shares(how.kind, plan);
  std::unordered_map<int, std::vector<Hop>> hops;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    const Connection& c = connections[i];
    hops[ranks[c.from]].push_back({members[c.to], c.rail, ring ? plan.lanes[c.lane].share : shares[i]});
  }
  return hops;
}

}  // namespace rehearse
