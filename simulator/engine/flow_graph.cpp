#include "simulator/engine/flow_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "models/text/error.hpp"
#include "simulator/engine/progress.hpp"
#include "simulator/schedule/folding.hpp"

namespace rehearse {

namespace {

// Labels with which edges touch collectives, places in rings, their ranks, and lanes.
constexpr std::uint32_t kCollective = 3, kPosition = 4, kPlacedRank = 5, kLane = 6;

class Builder {
public:
  Builder(const Run& run, const Cluster& cluster, const EngineOptions& options)
      : run_(run), cluster_(cluster), options_(options) {}

  FlowGraph build() {
    g_.symmetry = symmetry_of_run();
    add_ranks();
    collect_transfers();
    add_flows();
    colour_links();
    return std::move(g_);
  }

private:
  // A run has the symmetry of its schedule if the moves exchange equal blocks of nodes, and nothing else
  // tells the ranks apart.
  RankSymmetry symmetry_of_run() const {
    const int nodes = cluster_.nodes_per_equal_block();
    if (nodes == 0 || !options_.fold || options_.fidelity == Fidelity::chunk || !run_.events.empty() ||
        run_.jobs.size() != 1 || run_.jobs.front().phases.size() != 1 || !run_.jobs.front().start_s.empty())
      return {};
    const Job& job = run_.jobs.front();
    for (std::size_t rank = 0; rank < job.endpoints.size(); ++rank)
      if (job.endpoints[rank] != static_cast<int>(rank)) return {};
    const Schedule& schedule = *job.phases.front().schedule;
    const std::int64_t ranks_per_move = std::int64_t{nodes} * cluster_.node().devices;
    if (ranks_per_move >= schedule.ranks() || schedule.ranks() > cluster_.devices()) return {};
    return find_symmetry(schedule, static_cast<int>(ranks_per_move));
  }

  void add_ranks() {
    std::map<int, std::uint64_t> events_at;  // an event distinguishes its endpoint from others
    for (std::size_t e = 0; e < run_.events.size(); ++e)
      if (run_.events[e].endpoint >= 0) events_at[run_.events[e].endpoint] = mix_hash(e, 17);
    const int endpoints = cluster_.endpoints();
    for (std::size_t j = 0; j < run_.jobs.size(); ++j) {
      const Job& job = run_.jobs[j];
      first_rank_.push_back(static_cast<int>(g_.ranks.size()));
      g_.communication.emplace_back();
      std::vector<RankColours> colours;
      for (const Phase& phase : job.phases) {
        colours.emplace_back(*phase.schedule);
        g_.communication[j].push_back(std::make_shared<Communication>(*phase.schedule, g_.symmetry));
        g_.foldable = g_.foldable && foldable(*phase.schedule);
      }
      const Schedule& first = *job.phases.front().schedule;
      if (static_cast<int>(job.endpoints.size()) < first.ranks())
        throw RunError(fmt::format("job \"{}\" has {} ranks but {} endpoints", job.name, first.ranks(),
                                   job.endpoints.size()));
      for (std::size_t role = 0; role < first.roles.size(); ++role)
        for (int r = 0; r < first.roles[role].size(); ++r) {
          if (!g_.symmetry.represents(r)) continue;
          const int endpoint = job.endpoints[first.first_rank(static_cast<int>(role)) + r];
          if (endpoint < 0 || endpoint >= endpoints)
            throw RunError(fmt::format("job \"{}\", rank {}: endpoint {} does not exist; there are {}",
                                       job.name, r, endpoint, endpoints));
          std::uint64_t colour = mix_hash(j, role);
          for (std::size_t ph = 0; ph < job.phases.size(); ++ph)
            colour = mix_hash(colour, in_phase(job.phases[ph], static_cast<int>(role), r)
                                          ? colours[ph].of(static_cast<int>(role), r)
                                          : 0);
          const bool processor = endpoint >= cluster_.devices();
          colour = mix_hash(
              colour, std::bit_cast<std::uint64_t>(processor ? -1.0 : cluster_.device_factor(endpoint)));
          if (!processor && !cluster_.groups().empty())
            colour = mix_hash(
                colour, static_cast<std::uint64_t>(2 + cluster_.group_of_node(cluster_.node_of(endpoint))));
          if (const auto it = events_at.find(endpoint); it != events_at.end())
            colour = mix_hash(colour, it->second);
          if (const double start_s =
                  starts_at(job, static_cast<std::size_t>(first.first_rank(static_cast<int>(role)) + r));
              start_s > 0)
            colour = mix_hash(colour, std::bit_cast<std::uint64_t>(start_s));
          g_.ranks.push_back({static_cast<int>(j), static_cast<int>(role), r, endpoint});
          g_.graph.node_colour.push_back(colour);
        }
    }
  }

  static double starts_at(const Job& job, std::size_t rank) {
    return rank < job.start_s.size() ? job.start_s[rank] : 0;
  }

  // Returns the rank node of a rank that a phase numbers over all its roles.
  int node_of(int job, int phase, int phase_rank) const {
    const Communication& talk = *g_.communication[job][phase];
    const int role = talk.role_of_rank(phase_rank);
    const int rank = phase_rank - run_.jobs[job].phases[phase].schedule->first_rank(role);
    return first_rank_[job] +
           g_.symmetry.number_of(run_.jobs[job].phases.front().schedule->first_rank(role) + rank);
  }

  void collect_transfers() {
    for (std::size_t j = 0; j < run_.jobs.size(); ++j)
      for (std::size_t ph = 0; ph < run_.jobs[j].phases.size(); ++ph) {
        g_.first_transfer[{static_cast<int>(j), static_cast<int>(ph)}] =
            static_cast<int>(g_.transfers.size());
        const Communication& talk = *g_.communication[j][ph];
        for (std::size_t t = 0; t < talk.transfers.size(); ++t) {
          FlowGraph::TransferInfo info;
          info.job = static_cast<int>(j);
          info.phase = static_cast<int>(ph);
          info.number = static_cast<int>(t);
          info.spread = talk.transfers[t].spread;
          for (int r : talk.transfers[t].ranks)
            if (g_.symmetry.represents(r)) info.ranks.push_back(node_of(info.job, info.phase, r));
          g_.transfers.push_back(std::move(info));
        }
        // The slots of the ranks that take part determine overlap and channels.
        const int ranks = g_.symmetry.representatives(run_.jobs[j].phases[ph].schedule->ranks());
        for (int n = 0; n < ranks; ++n) {
          const int r = g_.symmetry.rank_of(n);
          const std::vector<Slot>& slots = talk.slots_of(talk.program_of_rank(r));
          for (std::size_t s = 0; s < slots.size(); ++s)
            for (int t : talk.at(r, static_cast<int>(s))) {
              const int number = g_.first_transfer[{static_cast<int>(j), static_cast<int>(ph)}] + t;
              if (slots[s].kind == Slot::Kind::collective) {
                g_.transfers[number].channels = slots[s].collective.channels;
                g_.transfers[number].course = slots[s].course();
                g_.transfers[number].algorithm = slots[s].collective.used_algorithm();
              }
              if (slots[s].access.one_sided) g_.transfers[number].access = slots[s].access;
              if (slots[s].may_overlap) overlapping_.insert(number);
            }
        }
      }
  }

  // Appends a flow without links. Calls of cross() must follow, and touches must be added to the edge right
  // after.
  int add_flow(int transfer, std::uint64_t colour) {
    g_.graph.add_edge(mix_hash(colour, 7));
    FlowGraph::Flow flow;
    flow.edge = static_cast<int>(g_.graph.edge_colour.size()) - 1;
    flow.transfer = transfer;
    flow.may_overlap = overlapping_.count(transfer) > 0;
    g_.flows.push_back(flow);
    g_.transfers[transfer].flows.push_back(static_cast<int>(g_.flows.size()) - 1);
    crossed_.clear();
    return static_cast<int>(g_.flows.size()) - 1;
  }

  // Under a symmetry, ranks are the devices with their numbers, and links belong to the nodes beside them.
  bool represents(LinkId link) const {
    return g_.symmetry.copies() == 1 ||
           g_.symmetry.represents(cluster_.node_beside(link) * cluster_.node().devices);
  }

  // Of a transfer that is spread over all copies, the connections out of one block represent all others, and
  // with those into the block they cross all its links.
  void cross(int flow, const std::vector<Endpoint>& members, const Connection& c) {
    FlowGraph::Flow& f = g_.flows[flow];
    ++f.hops;
    const bool spread = g_.transfers[f.transfer].spread;
    const bool out_of_block = !spread || g_.symmetry.represents(members[c.from]);
    if (!out_of_block && !g_.symmetry.represents(members[c.to])) return;
    route_.clear();
    route_edge(cluster_, members, edge_of(c), c.rail, route_);
    for (LinkId l : route_)
      if (!spread || represents(l)) crossed_.push_back(l);
    if (!out_of_block) return;
    double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
    for (LinkId l : route_) {
      latency += cluster_.latency_s(l);
      bandwidth = std::min(bandwidth, cluster_.bandwidth(l));
    }
    f.latency_s = std::max(f.latency_s, latency);
    f.slowest_bandwidth = bandwidth;
  }

  static PlanEdge edge_of(const Connection& c) { return {c.from, c.to, c.tree, c.through}; }

  // Returns edges that represent all of a collective: those out of one block. For an all-to-all, returns
  // those to the next 15 members in the members' order.
  std::vector<PlanEdge> edges_of(const FlowGraph::TransferInfo& info, const std::vector<Endpoint>& members,
                                 const std::vector<Connection>& connections) const {
    std::vector<PlanEdge> edges;
    const auto is_copy = [&](int m) { return info.spread && !g_.symmetry.represents(members[m]); };
    if (info.course == Course::pairs)
      for (int count = static_cast<int>(members.size()), m = 0; m < count; ++m)
        for (int far = 1; far < std::min(count, 16) && !is_copy(m); ++far)
          edges.push_back({m, (m + far) % count});
    for (const Connection& c : connections)
      if (!is_copy(c.from)) edges.push_back(edge_of(c));
    return edges;
  }

  // Number of copies of a rank or link that a transfer, or one of its flows, touches alike.
  int copies_touched_by(const FlowGraph::TransferInfo& info) const {
    return info.spread ? g_.symmetry.copies() : 1;
  }

  void touch_crossed_links() {
    const int times = copies_touched_by(g_.transfers[g_.flows.back().transfer]);
    std::sort(crossed_.begin(), crossed_.end());
    for (std::size_t i = 0; i < crossed_.size();) {
      std::size_t k = i;
      while (k < crossed_.size() && crossed_[k] == crossed_[i]) ++k;
      g_.graph.touch(link_node(crossed_[i]), kLinkLabel + static_cast<std::uint32_t>(k - i), times);
      i = k;
    }
  }

  // Links become nodes after all others, in the order of first use; until then they have negative numbers.
  int link_node(LinkId link) {
    const auto [it, added] = link_number_.try_emplace(link, static_cast<int>(g_.links.size()));
    if (added) g_.links.push_back(link);
    return -1 - it->second;
  }

  void add_flows() {
    const bool chunk = options_.fidelity == Fidelity::chunk;
    std::int64_t members_of_all = 0;
    for (const FlowGraph::TransferInfo& info : g_.transfers)
      members_of_all += static_cast<std::int64_t>(info.ranks.size());
    begin_stage(SimulationStage::network, members_of_all);
    for (std::size_t n = 0; n < g_.transfers.size(); ++n) {
      FlowGraph::TransferInfo& info = g_.transfers[n];
      advance_stage(static_cast<std::int64_t>(info.ranks.size()));
      const Communication& talk = *g_.communication[info.job][info.phase];
      const std::uint64_t colour = mix_hash(mix_hash(info.job, info.phase),
                                            static_cast<std::uint64_t>(talk.transfers[info.number].pattern));
      if (!talk.transfers[info.number].collective) {
        const Endpoint from = g_.ranks[info.ranks[0]].endpoint, to = g_.ranks[info.ranks[1]].endpoint;
        const int flow = add_flow(static_cast<int>(n), colour);
        cross(flow, {from, to}, {0, 1});
        info.edge = g_.flows[flow].edge;
        g_.graph.touch(info.ranks[0], kSends);
        g_.graph.touch(info.ranks[1], kReceives);
        touch_crossed_links();
        if (info.access.one_sided) {
          info.shape.hop_latency_s = g_.flows[flow].latency_s;
          continue;
        }
        info.shape = shape_of({from, to}, 1);
        take_interconnect(info.shape, cluster_, {from, to}, {{0, 1}});
        info.shape.hop_latency_s = g_.flows[flow].latency_s;
        info.shape.ring_bandwidth = g_.flows[flow].slowest_bandwidth;
        continue;
      }
      std::vector<Endpoint> members;
      if (info.spread)  // with the copies of its representatives
        members = talk.transfers[info.number].ranks;
      else
        for (int r : info.ranks) members.push_back(g_.ranks[r].endpoint);
      const bool ring_in_messages = chunk && info.course == Course::ring && info.algorithm == Algorithm::ring;
      const bool planned = members.size() > 1 &&
                           (info.algorithm != Algorithm::ring || (ring_in_messages && options_.ring_tables));
      CollectivePlan plan;
      plan.members = static_cast<int>(members.size());
      if (info.course != Course::pairs)
        plan = collective_plan(info.algorithm, cluster_, members, info.channels);
      info.channels = std::max(1, static_cast<int>(plan.lanes.size()));
      info.node = static_cast<int>(g_.graph.node_colour.size());
      g_.graph.node_colour.push_back(mix_hash(colour, 11));
      g_.graph.add_edge(mix_hash(colour, 13));
      g_.graph.touch(info.node, kCollective);
      for (int r : info.ranks) g_.graph.touch(r, kMember, copies_touched_by(info));
      info.shape = shape_of(members, info.channels);
      std::vector<Connection> connections;
      if (info.course != Course::pairs) connections = connections_of(info.course, plan);
      if (members.size() > 1)
        take_interconnect(info.shape, cluster_, members, edges_of(info, members, connections));
      const int number = static_cast<int>(n);
      if (info.course == Course::pairs)
        add_pairs(number, colour, members);
      else if (planned)
        add_plan(number, colour, members, std::move(plan));
      else if (ring_in_messages)
        add_rings(number, colour, members, connections);
      else
        add_coupled_rings(number, colour, members, connections);
      for (int f : info.flows)
        info.shape.hop_latency_s = std::max(info.shape.hop_latency_s, g_.flows[f].latency_s);
    }
    // All other nodes have their numbers now, so links get theirs.
    const int first = static_cast<int>(g_.graph.node_colour.size());
    g_.first_link_node = first;
    for (Hypergraph::Touch& touch : g_.graph.touches)
      if (touch.node < 0) touch.node = first + (-1 - touch.node);
  }

  // The connections of a ring or chain are sorted by lane; calls visit(first, end) for each lane.
  template <class Visit>
  static void each_lane(const std::vector<Connection>& connections, Visit visit) {
    for (auto first = connections.begin(); first != connections.end();) {
      const auto end =
          std::find_if(first, connections.end(), [&](const Connection& c) { return c.lane != first->lane; });
      visit(first, end);
      first = end;
    }
  }

  // Adds one flow for each lane.
  void add_coupled_rings(int transfer, std::uint64_t colour, const std::vector<Endpoint>& members,
                         const std::vector<Connection>& connections) {
    each_lane(connections, [&](auto first, auto end) {
      const int flow = add_flow(transfer, colour);
      g_.graph.touch(g_.transfers[transfer].node, kCollective);
      for (auto c = first; c != end; ++c) cross(flow, members, *c);
      touch_crossed_links();
    });
  }

  void add_pairs(int transfer, std::uint64_t colour, const std::vector<Endpoint>& members) {
    const int flow = add_flow(transfer, colour), count = static_cast<int>(members.size());
    g_.graph.touch(g_.transfers[transfer].node, kCollective);
    for (int member = 0; member < count; ++member)
      for (const Connection& c : pairs_from(member, count))
        if (members[c.from] != members[c.to]) cross(flow, members, c);
    touch_crossed_links();
  }

  // Adds one coupled flow for each phase of each lane; at `chunk`, one flow for each connection. NVLS and
  // CollNet have no connections, because switches form their sums: they stay coupled at `chunk`, too.
  void add_plan(int transfer, std::uint64_t colour, const std::vector<Endpoint>& members,
                CollectivePlan plan) {
    FlowGraph::TransferInfo& info = g_.transfers[transfer];
    info.plan = on_network(plan, cluster_, members);
    if (options_.fidelity == Fidelity::chunk && !is_switched(plan.algorithm)) {
      g_.foldable = false;
      for (const Connection& c : connections_of(info.course, plan)) {
        const int flow = add_flow(transfer, colour);
        cross(flow, members, c);
        touch_crossed_links();
      }
      info.steps = std::make_shared<CollectivePlan>(std::move(plan));
    } else {
      for (const std::vector<StageOnNetwork>& stages : info.plan.lanes) add_lane(transfer, colour, stages);
    }
    for (std::vector<StageOnNetwork>& stages : info.plan.lanes)
      for (StageOnNetwork& stage : stages) std::vector<LinkId>().swap(stage.links);
  }

  // Returns a hash of everything that stage_cost() reads.
  static std::uint64_t cost_colour(const StageOnNetwork& stage) {
    std::uint64_t colour = mix_hash(static_cast<std::uint64_t>(stage.kind), stage.steps);
    for (const int count :
         {stage.shape.ranks, stage.shape.nodes, stage.shape.channels, stage.shape.compute_capability,
          stage.shape.nvlink_only ? 1 : 0, stage.shape.relayed ? 1 : 0})
      colour = mix_hash(colour, static_cast<std::uint64_t>(count));
    for (const double number :
         {stage.share.block, stage.share.edge, stage.inverse_bandwidth, stage.shape.hop_latency_s,
          stage.shape.tree_latency_s, stage.shape.nvlink_bandwidth, stage.shape.pcie_bandwidth,
          stage.shape.pcie_share})
      colour = mix_hash(colour, std::bit_cast<std::uint64_t>(number));
    return colour;
  }

  void add_lane(int transfer, std::uint64_t colour, const std::vector<StageOnNetwork>& stages) {
    const int number = static_cast<int>(g_.lanes.size());
    g_.transfers[transfer].lanes.push_back(number);
    FlowGraph::LaneInfo& lane = g_.lanes.emplace_back();
    lane.node = static_cast<int>(g_.graph.node_colour.size());
    lane.transfer = transfer;
    g_.graph.node_colour.push_back(mix_hash(colour, 37));
    g_.graph.add_edge(mix_hash(colour, 41));
    g_.graph.touch(lane.node, kLane);
    g_.graph.touch(g_.transfers[transfer].node, kCollective);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      // Phases stay apart even if they are identical, since they follow one another; so do those with
      // different costs.
      const int flow = add_flow(transfer, mix_hash(mix_hash(colour, 64 + s), cost_colour(stages[s])));
      lane.flows.push_back(flow);
      FlowGraph::Flow& f = g_.flows[flow];
      f.lane = number;
      f.stage = static_cast<int>(s);
      f.hops = stages[s].edges;
      f.latency_s = stages[s].shape.hop_latency_s;
      crossed_ = stages[s].links;
      g_.graph.touch(lane.node, kLane);
      touch_crossed_links();
    }
  }

  // Adds the places of each lane's ring; a place sends on the connection that begins there.
  void add_rings(int transfer, std::uint64_t colour, const std::vector<Endpoint>& members,
                 const std::vector<Connection>& connections) {
    each_lane(connections, [&](auto first, auto end) {
      const std::size_t n = static_cast<std::size_t>(end - first);
      std::vector<int> places(n);
      for (std::size_t i = 0; i < n; ++i) {
        places[i] = static_cast<int>(g_.graph.node_colour.size());
        g_.graph.node_colour.push_back(mix_hash(colour, 19));
        g_.place_of_node[places[i]] = static_cast<int>(g_.places.size());
        g_.places.push_back({places[i],
                             g_.transfers[transfer].ranks[first[static_cast<std::ptrdiff_t>(i)].from], -1, -1,
                             -1, transfer});
        g_.graph.add_edge(mix_hash(colour, 23));
        g_.graph.touch(places[i], kPosition);
        g_.graph.touch(g_.places.back().rank_node, kPlacedRank);
        g_.graph.touch(g_.transfers[transfer].node, kCollective);
      }
      for (std::size_t i = 0; i < n; ++i) {
        const Connection& connection = first[static_cast<std::ptrdiff_t>(i)];
        const std::size_t next = (i + 1) % n;
        const int flow = add_flow(transfer, mix_hash(colour, 29));
        g_.graph.touch(places[i], kSends);
        g_.graph.touch(places[next], kReceives);
        cross(flow, members, connection);
        touch_crossed_links();
        FlowGraph::Place& from = g_.places[g_.place_of_node[places[i]]];
        FlowGraph::Place& to = g_.places[g_.place_of_node[places[next]]];
        from.next = places[next];
        to.previous = places[i];
        to.flow = flow;
      }
    });
  }

  TransferShape shape_of(const std::vector<Endpoint>& members, int channels) const {
    TransferShape shape;
    shape.ranks = static_cast<int>(members.size());
    shape.channels = channels;
    std::vector<int> nodes;
    bool processors = false;
    for (Endpoint e : members) {
      nodes.push_back(cluster_.node_of(e));
      processors |= e >= cluster_.devices();
    }
    std::sort(nodes.begin(), nodes.end());
    shape.nodes = static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
    shape.compute_capability = processors ? 0 : cluster_.node().device.compute_capability;
    return shape;
  }

  void colour_links() {
    std::map<LinkId, std::uint64_t> events_at;
    for (std::size_t e = 0; e < run_.events.size(); ++e)
      if (run_.events[e].link >= 0) events_at[run_.events[e].link] = mix_hash(e, 31);
    for (LinkId l : g_.links) {
      std::uint64_t colour = mix_hash(std::bit_cast<std::uint64_t>(cluster_.bandwidth(l)),
                                      std::bit_cast<std::uint64_t>(cluster_.latency_s(l)));
      if (const auto it = events_at.find(l); it != events_at.end()) {
        colour = mix_hash(colour, it->second);
        g_.changing_links.insert(l);
      }
      g_.graph.node_colour.push_back(colour);
    }
  }

  const Run& run_;
  const Cluster& cluster_;
  const EngineOptions& options_;
  FlowGraph g_;
  std::vector<int> first_rank_;  // by job
  std::set<int> overlapping_;    // transfers of which two may be under way at once
  std::vector<LinkId> route_, crossed_;
  std::unordered_map<LinkId, int> link_number_;
};

}  // namespace

bool in_phase(const Phase& phase, int role, int rank) {
  return role < static_cast<int>(phase.schedule->roles.size()) && rank < phase.schedule->roles[role].size();
}

FlowGraph build_flow_graph(const Run& run, const Cluster& cluster, const EngineOptions& options) {
  return Builder(run, cluster, options).build();
}

}  // namespace rehearse
