#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "simulator/costs/compute.hpp"
#include "simulator/trace/causes.hpp"
#include "simulator/trace/critical_path.hpp"
#include "simulator/trace/rows.hpp"
#include "simulator/trace/sides.hpp"

namespace rehearse {
namespace {

// Determines which links limit the bytes of transfers.
class SlowestLinks {
public:
  SlowestLinks(const Trace& trace, const Cluster& cluster)
      : trace_(trace), cluster_(cluster), sides_(trace) {}

  // Considers a row's own messages and those of its other sides (a server receives from all workers, but each
  // of them only sends to it): returns the kind of the link on which the bytes of one side take longest.
  Resource of(std::size_t row) {
    const auto [known, fresh] = resource_.try_emplace(key(row), Resource::network_links);
    if (!fresh) return known->second;
    if (trace_.op_of(row).kind == OpKind::collective) return known->second = of_collective(row);
    Longest longest;
    messages(row, longest);
    std::set<Key> seen = {key(row)};
    for (const std::size_t side : sides_.of(row))
      if (seen.insert(key(side)).second) messages(side, longest);
    return known->second = longest.resource;
  }

private:
  using Key = std::tuple<const Schedule*, int, int>;  // schedule, class, op
  struct Longest {
    double seconds = 0;
    Resource resource = Resource::network_links;
  };

  Key key(std::size_t row) const {
    return {&schedule_of(trace_, row), trace_.spans.rank_class[row], trace_.spans.op[row]};
  }
  const RankClass& who(std::size_t row) const { return trace_.classes[trace_.spans.rank_class[row]]; }

  Resource of_collective(std::size_t row) const {
    const Schedule& schedule = schedule_of(trace_, row);
    const std::vector<int>& endpoints = trace_.run.jobs[who(row).job].endpoints;
    const int first = schedule.first_rank(who(row).role), rank = who(row).ranks.front();
    const std::vector<int> members =
        group_members(schedule.roles[who(row).role], trace_.op_of(row).collective.group, rank);
    const int node = cluster_.node_of(endpoints[first + rank]);
    const bool inside = std::all_of(members.begin(), members.end(), [&](int member) {
      return cluster_.node_of(endpoints[first + member]) == node;
    });
    return inside ? Resource::intra_node_links : Resource::network_links;
  }

  void messages(std::size_t row, Longest& longest) const {
    const Schedule& schedule = schedule_of(trace_, row);
    const RankClass& own = who(row);
    const std::vector<int>& endpoints = trace_.run.jobs[own.job].endpoints;
    const int rank = own.ranks.front(), here = endpoints[schedule.first_rank(own.role) + rank];
    std::map<LinkId, double> seconds;
    for (const Message& message : trace_.op_of(row).messages) {
      if (message.peer.kind == Peer::Kind::sender) continue;  // the row of its other side says who that was
      const int role = message.peer.kind == Peer::Kind::offset ? own.role : message.peer.role;
      std::vector<int> peers;
      if (message.peer.kind != Peer::Kind::any) {
        peers = peer_ranks(schedule.roles, own.role, message.peer, rank);
      } else if (trace_.spans.sender[row] >= 0) {
        peers = {trace_.spans.sender[row]};
      }
      for (const int peer : peers) {
        const int there = endpoints[schedule.first_rank(role) + peer];
        const bool sends = message.direction == Message::Direction::send;
        std::vector<LinkId> route;
        cluster_.route(sends ? here : there, sends ? there : here, -1, route);
        for (const LinkId link : route)
          seconds[link] += message.bytes.at(schedule.roles[own.role], rank) / cluster_.bandwidth(link);
      }
    }
    for (const auto& [link, its_seconds] : seconds) {
      if (its_seconds <= longest.seconds) continue;
      longest = {its_seconds,
                 cluster_.inside_node(link) ? Resource::intra_node_links : Resource::network_links};
    }
  }

  const Trace& trace_;
  const Cluster& cluster_;
  Sides sides_;
  std::map<Key, Resource> resource_;
};

}  // namespace

std::array<double, kResourceNames.size()> path_savings_s(const std::vector<PathSegment>& path,
                                                         const Trace& trace, const Cluster& cluster) {
  const double gain = 1 - 1 / kFaster;
  const Device& device = cluster.node().device;
  Device faster_memory = device;
  faster_memory.memory_bandwidth.value *= kFaster;
  std::array<double, kResourceNames.size()> saved{};
  const auto add = [&](Resource resource, double seconds) {
    saved[static_cast<std::size_t>(resource)] += seconds;
  };
  std::map<std::pair<const Schedule*, int>, double> memory_gain;  // by work
  SlowestLinks slowest(trace, cluster);
  for (const PathSegment& segment : path) {
    if (segment.row == kNoRow) continue;
    const double seconds = segment.end_s - segment.begin_s;
    const Op& op = trace.op_of(segment.row);
    const Schedule& schedule = schedule_of(trace, segment.row);
    if (op.purpose == Purpose::input && !copies_to_or_from_device(op)) {
      add(Resource::input, gain * seconds);
    } else if (op.kind == OpKind::compute && on_server(trace, segment.row)) {
      add(Resource::servers, gain * seconds);
    } else if (segment.kind == kLaunches) {
      add(Resource::launches, gain * seconds);
    } else if (op.kind == OpKind::compute) {
      add(Resource::compute, gain * seconds);
      if (op.work < 0) continue;
      const auto [share, fresh] = memory_gain.try_emplace({&schedule, op.work});
      if (fresh) {
        const double now_s = work_time_s(schedule.works[op.work], device);
        if (now_s > 0) share->second = 1 - work_time_s(schedule.works[op.work], faster_memory) / now_s;
      }
      add(Resource::memory_bandwidth, share->second * seconds);
    } else if (op.kind == OpKind::host && op.host_bytes > 0) {
      add(copies_to_or_from_device(op) ? Resource::intra_node_links : Resource::host, gain * seconds);
    } else if (is_transfer(op) && segment.kind == "latency") {
      add(Resource::latency, gain * seconds);
    } else if (is_transfer(op)) {
      add(slowest.of(segment.row), gain * seconds);
    }
  }
  return saved;
}

}  // namespace rehearse
