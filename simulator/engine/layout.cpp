#include "simulator/engine/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <unordered_map>

#include "models/base/error.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/schedule/folding.hpp"

namespace rehearse {

namespace {

// Labels with which edges touch what is not a rank; weights of links count up from kLink.
constexpr std::uint32_t kCollective = 3, kPosition = 4, kPlacedRank = 5, kLink = 16;

// Everything that moves bytes over links: an edge of the hypergraph and a flow of the simulation.
struct FlowEdge {
  int edge = 0;      // in the hypergraph
  int transfer = 0;  // in Builder::transfers
  double latency_s = 0;
  double slowest_bandwidth = 0;
  int hops = 1;
  bool may_overlap = false;
};

struct TransferInfo {
  int job = 0, phase = 0, number = 0;  // in the phase's Communication
  int edge = -1;                       // message: its flow's edge; collective: -1
  int node = -1;                       // collective: its node
  int channels = 1;
  bool pairwise = false;
  TransferShape shape;
  std::vector<int> ranks;      // rank nodes
  std::vector<int> flows;      // into Builder::flows
  std::vector<int> positions;  // position nodes (chunk)
};

class Builder {
public:
  Builder(const Run& run, const Cluster& cluster, const EngineOptions& options)
      : run_(run), cluster_(cluster), options_(options) {}

  Layout build() {
    add_ranks();
    collect_transfers();
    add_flows();
    colour_links();
    const Partition p =
        options_.fold && foldable_ ? coarsest_equitable_partition(graph_) : discrete_partition(graph_);
    make_classes(p);
    make_links(p);
    make_flows(p);
    make_transfers(p);
    make_positions(p);
    make_programs(p);
    return std::move(layout_);
  }

private:
  struct RankNode {
    int job = 0, role = 0, rank = 0, endpoint = 0;
  };

  void add_ranks() {
    std::map<int, std::uint64_t> events_at;  // an event tells its endpoint apart
    for (std::size_t e = 0; e < run_.events.size(); ++e)
      if (run_.events[e].endpoint >= 0) events_at[run_.events[e].endpoint] = mix_hash(e, 17);
    const int endpoints = cluster_.devices() + cluster_.nodes() + cluster_.server_nodes();
    for (std::size_t j = 0; j < run_.jobs.size(); ++j) {
      const Job& job = run_.jobs[j];
      first_rank_.push_back(static_cast<int>(ranks_.size()));
      layout_.communication.emplace_back();
      layout_.index.emplace_back();
      for (const Phase& phase : job.phases) {
        layout_.communication[j].push_back(std::make_shared<Communication>(*phase.schedule));
        layout_.index[j].emplace_back();
        for (const Program& program : phase.schedule->programs)
          layout_.index[j].back().emplace_back(*phase.schedule, program);
        foldable_ = foldable_ && foldable(*phase.schedule);
      }
      const Schedule& first = *job.phases.front().schedule;
      if (static_cast<int>(job.endpoints.size()) < first.ranks())
        throw RunError(fmt::format("job \"{}\" has {} ranks but {} endpoints", job.name, first.ranks(),
                                   job.endpoints.size()));
      for (std::size_t role = 0; role < first.roles.size(); ++role)
        for (int r = 0; r < first.roles[role].size(); ++r) {
          const int endpoint = job.endpoints[ranks_.size() - first_rank_[j]];
          if (endpoint < 0 || endpoint >= endpoints)
            throw RunError(fmt::format("job \"{}\", rank {}: endpoint {} does not exist; there are {}",
                                       job.name, r, endpoint, endpoints));
          std::uint64_t colour = mix_hash(j, role);
          for (const Phase& phase : job.phases)
            colour = mix_hash(colour, in_phase(phase, static_cast<int>(role), r)
                                          ? rank_colour(*phase.schedule, static_cast<int>(role), r)
                                          : 0);
          const bool processor = endpoint >= cluster_.devices();
          colour = mix_hash(
              colour, std::bit_cast<std::uint64_t>(processor ? -1.0 : cluster_.device_factor(endpoint)));
          if (const auto it = events_at.find(endpoint); it != events_at.end())
            colour = mix_hash(colour, it->second);
          ranks_.push_back({static_cast<int>(j), static_cast<int>(role), r, endpoint});
          graph_.node_colour.push_back(colour);
        }
    }
  }

  static bool in_phase(const Phase& phase, int role, int rank) {
    return role < static_cast<int>(phase.schedule->roles.size()) && rank < phase.schedule->roles[role].size();
  }

  // Rank node of a rank that a phase numbers over all its roles.
  int node_of(int job, int phase, int phase_rank) const {
    const Communication& talk = *layout_.communication[job][phase];
    const int role = talk.role_of_rank(phase_rank);
    const int rank = phase_rank - run_.jobs[job].phases[phase].schedule->first_rank(role);
    return first_rank_[job] + run_.jobs[job].phases.front().schedule->first_rank(role) + rank;
  }

  void collect_transfers() {
    for (std::size_t j = 0; j < run_.jobs.size(); ++j)
      for (std::size_t ph = 0; ph < run_.jobs[j].phases.size(); ++ph) {
        first_transfer_[{static_cast<int>(j), static_cast<int>(ph)}] = static_cast<int>(transfers_.size());
        const Communication& talk = *layout_.communication[j][ph];
        for (std::size_t t = 0; t < talk.transfers.size(); ++t) {
          TransferInfo info;
          info.job = static_cast<int>(j);
          info.phase = static_cast<int>(ph);
          info.number = static_cast<int>(t);
          for (int r : talk.transfers[t].ranks) info.ranks.push_back(node_of(info.job, info.phase, r));
          transfers_.push_back(std::move(info));
        }
        // Overlap and channels are said by the slots of the ranks that take part.
        for (std::size_t r = 0; r < static_cast<std::size_t>(run_.jobs[j].phases[ph].schedule->ranks());
             ++r) {
          const std::vector<Slot>& slots = talk.slots(talk.program_of_rank(static_cast<int>(r)));
          for (std::size_t s = 0; s < slots.size(); ++s)
            for (int t : talk.at(static_cast<int>(r), static_cast<int>(s))) {
              const int number = first_transfer_[{static_cast<int>(j), static_cast<int>(ph)}] + t;
              if (slots[s].kind == Slot::Kind::collective) {
                transfers_[number].channels = slots[s].collective.channels;
                transfers_[number].pairwise = slots[s].pairwise();
              }
              if (slots[s].may_overlap) overlapping_.insert(number);
            }
        }
      }
  }

  // Appends a flow that crosses these routes; touches must be added to the edge right after.
  int add_flow(int transfer, std::uint64_t colour) {
    graph_.add_edge(mix_hash(colour, 7));
    FlowEdge flow;
    flow.edge = static_cast<int>(graph_.edge_colour.size()) - 1;
    flow.transfer = transfer;
    flow.may_overlap = overlapping_.count(transfer) > 0;
    flow.hops = 0;
    flows_.push_back(flow);
    transfers_[transfer].flows.push_back(static_cast<int>(flows_.size()) - 1);
    crossed_.clear();
    return static_cast<int>(flows_.size()) - 1;
  }

  void cross(int flow, Endpoint from, Endpoint to, int rail) {
    route_.clear();
    cluster_.route(from, to, rail, route_);
    double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
    for (LinkId l : route_) {
      latency += cluster_.latency_s(l);
      bandwidth = std::min(bandwidth, cluster_.bandwidth(l));
      crossed_.push_back(l);
    }
    flows_[flow].latency_s = std::max(flows_[flow].latency_s, latency);
    flows_[flow].slowest_bandwidth = bandwidth;
    ++flows_[flow].hops;
  }

  void touch_crossed_links() {
    std::sort(crossed_.begin(), crossed_.end());
    for (std::size_t i = 0; i < crossed_.size();) {
      std::size_t k = i;
      while (k < crossed_.size() && crossed_[k] == crossed_[i]) ++k;
      graph_.touch(link_node(crossed_[i]), kLink + static_cast<std::uint32_t>(k - i));
      i = k;
    }
  }

  // Links come to be nodes behind all others, in order of first use; until then they have negative numbers.
  int link_node(LinkId link) {
    const auto [it, added] = link_number_.try_emplace(link, static_cast<int>(links_.size()));
    if (added) links_.push_back(link);
    return -1 - it->second;
  }

  void add_flows() {
    const bool chunk = options_.fidelity == Fidelity::chunk;
    for (std::size_t n = 0; n < transfers_.size(); ++n) {
      TransferInfo& info = transfers_[n];
      const Communication& talk = *layout_.communication[info.job][info.phase];
      const std::uint64_t colour = mix_hash(mix_hash(info.job, info.phase),
                                            static_cast<std::uint64_t>(talk.transfers[info.number].pattern));
      if (!talk.transfers[info.number].collective) {
        const Endpoint from = ranks_[info.ranks[0]].endpoint, to = ranks_[info.ranks[1]].endpoint;
        const int flow = add_flow(static_cast<int>(n), colour);
        cross(flow, from, to, -1);
        info.edge = flows_[flow].edge;
        graph_.touch(info.ranks[0], kSends);
        graph_.touch(info.ranks[1], kReceives);
        touch_crossed_links();
        info.shape = shape_of({from, to}, 1);
        info.shape.hop_latency_s = flows_[flow].latency_s;
        info.shape.ring_bandwidth = flows_[flow].slowest_bandwidth;
        continue;
      }
      std::vector<Endpoint> members;
      std::map<Endpoint, std::vector<int>> nodes_at;  // rank nodes at an endpoint, last first
      for (int r : info.ranks) members.push_back(ranks_[r].endpoint);
      for (auto r = info.ranks.rbegin(); r != info.ranks.rend(); ++r)
        nodes_at[ranks_[*r].endpoint].push_back(*r);
      const bool ring = members.size() > 1 && !info.pairwise;
      const Rings rings = ring ? ring_orders(cluster_, members, info.channels) : Rings{};
      info.channels = std::max(1, static_cast<int>(rings.orders.size()));
      info.node = static_cast<int>(graph_.node_colour.size());
      graph_.node_colour.push_back(mix_hash(colour, 11));
      graph_.add_edge(mix_hash(colour, 13));
      graph_.touch(info.node, kCollective);
      for (int r : info.ranks) graph_.touch(r, kMember);
      info.shape = shape_of(members, info.channels);
      for (std::size_t c = 0; c < rings.orders.size(); ++c) {
        const std::vector<Endpoint>& order = rings.orders[c];
        if (chunk)
          add_ring(static_cast<int>(n), colour, order, rings.rails[c], nodes_at);
        else
          add_coupled_ring(static_cast<int>(n), colour, order, rings.rails[c]);
      }
      if (info.pairwise) add_pairs(static_cast<int>(n), colour, members);
      for (int f : info.flows)
        info.shape.hop_latency_s = std::max(info.shape.hop_latency_s, flows_[f].latency_s);
    }
    // Now that all other nodes have their numbers, links get theirs.
    const int first = static_cast<int>(graph_.node_colour.size());
    first_link_node_ = first;
    for (Hypergraph::Touch& touch : graph_.touches)
      if (touch.node < 0) touch.node = first + (-1 - touch.node);
  }

  void add_coupled_ring(int transfer, std::uint64_t colour, const std::vector<Endpoint>& order, int rail) {
    const int flow = add_flow(transfer, colour);
    graph_.touch(transfers_[transfer].node, kCollective);
    for (std::size_t i = 0; i < order.size(); ++i) cross(flow, order[i], order[(i + 1) % order.size()], rail);
    touch_crossed_links();
  }

  void add_pairs(int transfer, std::uint64_t colour, const std::vector<Endpoint>& members) {
    const int flow = add_flow(transfer, colour);
    graph_.touch(transfers_[transfer].node, kCollective);
    for (Endpoint from : members)
      for (Endpoint to : members)
        if (from != to) cross(flow, from, to, -1);
    touch_crossed_links();
  }

  void add_ring(int transfer, std::uint64_t colour, const std::vector<Endpoint>& order, int rail,
                std::map<Endpoint, std::vector<int>> nodes_at) {
    const std::size_t n = order.size();
    std::vector<int> places(n);
    for (std::size_t i = 0; i < n; ++i) {
      places[i] = static_cast<int>(graph_.node_colour.size());
      graph_.node_colour.push_back(mix_hash(colour, 19));
      place_of_node_[places[i]] = static_cast<int>(places_.size());
      std::vector<int>& here = nodes_at[order[i]];
      places_.push_back({places[i], here.back(), -1, -1, -1, transfer});
      here.pop_back();
      graph_.add_edge(mix_hash(colour, 23));
      graph_.touch(places[i], kPosition);
      graph_.touch(places_.back().rank_node, kPlacedRank);
      graph_.touch(transfers_[transfer].node, kCollective);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t next = (i + 1) % n;
      const int flow = add_flow(transfer, mix_hash(colour, 29));
      graph_.touch(places[i], kSends);
      graph_.touch(places[next], kReceives);
      cross(flow, order[i], order[next], rail);
      touch_crossed_links();
      Place& from = places_[place_of_node_[places[i]]];
      Place& to = places_[place_of_node_[places[next]]];
      from.next = places[next];
      to.previous = places[i];
      to.flow = flow;
    }
  }

  TransferShape shape_of(const std::vector<Endpoint>& members, int channels) const {
    TransferShape shape;
    shape.ranks = static_cast<int>(members.size());
    shape.channels = channels;
    std::set<int> nodes;
    bool processors = false;
    for (Endpoint e : members) {
      nodes.insert(cluster_.node_of(e));
      processors |= e >= cluster_.devices();
    }
    shape.nodes = static_cast<int>(nodes.size());
    shape.compute_capability = processors ? 0 : cluster_.node().device.compute_capability;
    return shape;
  }

  void colour_links() {
    std::map<LinkId, std::uint64_t> events_at;
    for (std::size_t e = 0; e < run_.events.size(); ++e)
      if (run_.events[e].link >= 0) events_at[run_.events[e].link] = mix_hash(e, 31);
    for (LinkId l : links_) {
      std::uint64_t colour = mix_hash(std::bit_cast<std::uint64_t>(cluster_.bandwidth(l)),
                                      std::bit_cast<std::uint64_t>(cluster_.latency_s(l)));
      if (const auto it = events_at.find(l); it != events_at.end()) {
        colour = mix_hash(colour, it->second);
        changing_links_.insert(l);
      }
      graph_.node_colour.push_back(colour);
    }
  }

  // Numbers classes of a range of nodes from 0 in order of first member.
  template <class Visit>
  static int number_classes(const std::vector<int>& classes, std::size_t begin, std::size_t end,
                            Visit visit) {
    std::unordered_map<int, int> numbers;
    for (std::size_t n = begin; n < end; ++n)
      visit(n, numbers.try_emplace(classes[n], static_cast<int>(numbers.size())).first->second);
    return static_cast<int>(numbers.size());
  }

  void make_classes(const Partition& p) {
    rank_class_.resize(ranks_.size());
    number_classes(p.node_class, 0, ranks_.size(), [&](std::size_t n, int number) {
      rank_class_[n] = number;
      if (number == static_cast<int>(layout_.classes.size())) {
        layout_.classes.push_back({ranks_[n].job, ranks_[n].role, {}, ranks_[n].endpoint, {}});
        representative_rank_.push_back(static_cast<int>(n));
      }
      layout_.classes[number].ranks.push_back(ranks_[n].rank);
    });
  }

  void make_links(const Partition& p) {
    link_class_.resize(links_.size());
    number_classes(p.node_class, first_link_node_, p.node_class.size(), [&](std::size_t n, int number) {
      const LinkId link = links_[n - first_link_node_];
      link_class_[n - first_link_node_] = number;
      if (number == static_cast<int>(layout_.links.size()))
        layout_.links.push_back({link, 0, cluster_.bandwidth(link)});
      ++layout_.links[number].members;
      layout_.link_class_of.emplace_back(link, number);
    });
    std::sort(layout_.link_class_of.begin(), layout_.link_class_of.end());
  }

  void make_flows(const Partition& p) {
    flow_class_.resize(flows_.size());
    std::unordered_map<int, int> numbers;
    std::vector<int> representative;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const int number =
          numbers.try_emplace(p.edge_class[flows_[f].edge], static_cast<int>(numbers.size())).first->second;
      flow_class_[f] = number;
      if (number == static_cast<int>(layout_.flows.size())) {
        FlowClass flow;
        flow.latency_s = flows_[f].latency_s;
        flow.hops = flows_[f].hops;
        flow.contended = flows_[f].may_overlap;
        flow.members = 0;
        layout_.flows.push_back(flow);
        representative.push_back(static_cast<int>(f));
      }
      ++layout_.flows[number].members;
    }
    // Weights: all flows of a class over the representative link of each link class; own ones alike, per
    // transfer.
    std::vector<std::map<int, int>> weight(layout_.flows.size()), own(layout_.flows.size());
    std::vector<std::set<int>> users(layout_.links.size());
    std::unordered_map<int, std::vector<std::pair<int, int>>> link_weights_of_transfer;
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      const int e = flows_[f].edge;
      for (std::int64_t t = graph_.first_touch[e]; t < graph_.first_touch[e + 1]; ++t) {
        const Hypergraph::Touch& touch = graph_.touches[t];
        if (touch.node < first_link_node_) continue;
        const int link = touch.node - first_link_node_, times = static_cast<int>(touch.label - kLink);
        const int link_class = link_class_[link];
        users[link_class].insert(flow_class_[f]);
        if (links_[link] == layout_.links[link_class].representative)
          weight[flow_class_[f]][link_class] += times;
      }
    }
    for (std::size_t c = 0; c < layout_.flows.size(); ++c) {
      const FlowEdge& first = flows_[representative[c]];
      // What the flow's own transfer puts on each of the flow's links (channels of a collective may share
      // links).
      std::map<int, int> on_link, crossed;  // by link node
      for (int f : transfers_[first.transfer].flows)
        for (std::int64_t t = graph_.first_touch[flows_[f].edge]; t < graph_.first_touch[flows_[f].edge + 1];
             ++t)
          if (graph_.touches[t].node >= first_link_node_)
            on_link[graph_.touches[t].node] += static_cast<int>(graph_.touches[t].label - kLink);
      for (std::int64_t t = graph_.first_touch[first.edge]; t < graph_.first_touch[first.edge + 1]; ++t) {
        const int node = graph_.touches[t].node;
        if (node < first_link_node_) continue;
        int& most = own[c][link_class_[node - first_link_node_]];
        most = std::max(most, on_link[node]);
      }
      FlowClass& flow = layout_.flows[c];
      for (const auto& [link_class, times] : weight[c]) {
        FlowClass::Crossing crossing{link_class, times, own[c][link_class]};
        flow.crossings.push_back(crossing);
        const LinkClass& link = layout_.links[link_class];
        flow.inverse_bandwidth = std::max(flow.inverse_bandwidth, times / link.bandwidth);
        flow.own_inverse_bandwidth =
            std::max(flow.own_inverse_bandwidth, crossing.own_weight / link.bandwidth);
        flow.contended |= users[link_class].size() > 1;
        if (changing_links_.count(link.representative) > 0) flow.contended = flow.always_flow = true;
      }
    }
  }

  void make_transfers(const Partition& p) {
    transfer_class_.resize(transfers_.size());
    std::map<std::pair<bool, int>, int> numbers;  // (collective, class of its node or edge)
    for (std::size_t n = 0; n < transfers_.size(); ++n) {
      const TransferInfo& info = transfers_[n];
      const bool collective = info.node >= 0;
      const std::pair<bool, int> key{collective,
                                     collective ? p.node_class[info.node] : p.edge_class[info.edge]};
      const int number = numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second;
      transfer_class_[n] = number;
      if (number < static_cast<int>(layout_.transfers.size())) {
        ++layout_.transfers[number].members;
        continue;
      }
      TransferClass transfer;
      transfer.collective = collective;
      transfer.pairwise = info.pairwise;
      transfer.channels = info.channels;
      transfer.shape = info.shape;
      transfer.first_rank = ranks_[info.ranks[0]].rank;
      transfer.second_rank = ranks_[info.ranks.back()].rank;
      for (int r : info.ranks) transfer.participants.push_back(rank_class_[r]);
      std::set<int> flows;
      for (int f : info.flows) flows.insert(flow_class_[f]);
      transfer.flows.assign(flows.begin(), flows.end());
      if (collective) {
        std::sort(transfer.participants.begin(), transfer.participants.end());
        transfer.participants.erase(std::unique(transfer.participants.begin(), transfer.participants.end()),
                                    transfer.participants.end());
        double slowest = 0;
        for (int f : transfer.flows) slowest = std::max(slowest, layout_.flows[f].own_inverse_bandwidth);
        const int side_by_side = transfer.pairwise ? transfer.shape.ranks - 1 : transfer.channels;
        transfer.shape.ring_bandwidth = slowest > 0 ? side_by_side / slowest : 0;
      }
      layout_.transfers.push_back(std::move(transfer));
    }
  }

  void make_positions(const Partition& p) {
    std::unordered_map<int, int> numbers;
    std::vector<int> representative;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const int number =
          numbers.try_emplace(p.node_class[places_[i].node], static_cast<int>(numbers.size())).first->second;
      places_[i].position_class = number;
      if (number == static_cast<int>(representative.size())) representative.push_back(static_cast<int>(i));
    }
    for (int i : representative) {
      const Place& place = places_[i];
      layout_.positions.push_back({places_[place_of_node_[place.previous]].position_class,
                                   places_[place_of_node_[place.next]].position_class,
                                   flow_class_[place.flow]});
    }
  }

  void make_programs(const Partition&) {
    std::map<std::pair<int, int>, std::set<int>> positions_of;  // (rank node, transfer) -> position classes
    for (const Place& place : places_)
      positions_of[{place.rank_node, place.transfer}].insert(place.position_class);
    for (std::size_t c = 0; c < layout_.classes.size(); ++c) {
      Layout::Class& rank_class = layout_.classes[c];
      const int node = representative_rank_[c];
      const Job& job = run_.jobs[rank_class.job];
      const Device device = device_at(cluster_, rank_class.endpoint);
      const double speed =
          rank_class.endpoint < cluster_.devices() ? cluster_.device_factor(rank_class.endpoint) : 1;
      for (std::size_t ph = 0; ph < job.phases.size(); ++ph) {
        ClassProgram does;
        const Schedule& schedule = *job.phases[ph].schedule;
        if (in_phase(job.phases[ph], rank_class.role, ranks_[node].rank)) {
          const Communication& talk = *layout_.communication[rank_class.job][ph];
          const int phase_rank = schedule.first_rank(rank_class.role) + ranks_[node].rank;
          does.program = talk.program_of_rank(phase_rank);
          const int first = first_transfer_[{rank_class.job, static_cast<int>(ph)}];
          const std::size_t slots = talk.slots(does.program).size();
          does.transfers.resize(slots);
          does.positions.resize(slots);
          for (std::size_t s = 0; s < slots; ++s) {
            std::set<int> seen, positions;
            for (int t : talk.at(phase_rank, static_cast<int>(s))) {
              if (seen.insert(transfer_class_[first + t]).second)
                does.transfers[s].push_back(transfer_class_[first + t]);
              if (const auto it = positions_of.find({node, first + t}); it != positions_of.end())
                positions.insert(it->second.begin(), it->second.end());
            }
            does.positions[s].assign(positions.begin(), positions.end());
          }
          std::vector<bool> used(schedule.works.size(), false);
          for (const Op& op : schedule.programs[does.program].ops)
            if (op.kind == OpKind::compute) used[op.work] = true;
          does.seconds.assign(schedule.works.size(), 0);
          for (std::size_t w = 0; w < used.size(); ++w)
            if (used[w]) does.seconds[w] = work_time_s(schedule.works[w], device, speed);
        }
        rank_class.phases.push_back(std::move(does));
      }
    }
  }

  struct Place {
    int node = 0, rank_node = 0;
    int previous = -1, next = -1;  // nodes of the neighbours
    int flow = -1;                 // along which it receives, into flows_
    int transfer = 0;
    int position_class = -1;
  };

  const Run& run_;
  const Cluster& cluster_;
  const EngineOptions& options_;
  Layout layout_;
  Hypergraph graph_;
  bool foldable_ = true;
  std::vector<RankNode> ranks_;
  std::vector<int> first_rank_;                        // of each job
  std::map<std::pair<int, int>, int> first_transfer_;  // of each job and phase
  std::vector<TransferInfo> transfers_;
  std::set<int> overlapping_;
  std::vector<FlowEdge> flows_;
  std::vector<Place> places_;
  std::unordered_map<int, int> place_of_node_;
  std::vector<LinkId> links_, route_, crossed_;
  std::unordered_map<LinkId, int> link_number_;
  std::set<LinkId> changing_links_;
  int first_link_node_ = 0;
  std::vector<int> rank_class_, representative_rank_, link_class_, flow_class_, transfer_class_;
};

}  // namespace

int Layout::class_of_link(LinkId link) const {
  const auto it = std::lower_bound(link_class_of.begin(), link_class_of.end(), std::pair(link, -1));
  return it == link_class_of.end() || it->first != link ? -1 : it->second;
}

Device device_at(const Cluster& cluster, Endpoint endpoint) {
  if (endpoint < cluster.devices()) return cluster.node().device;
  Device device = device_preset("cpu-core");
  for (Sourced& peak : device.peak_flops) peak.value *= cluster.node().cpu_cores;
  const double given = cluster.node().cpu_memory_bandwidth;
  device.memory_bandwidth.value =
      given > 0 ? given : device.memory_bandwidth.value * cluster.node().cpu_cores;
  return device;
}

Layout lay_out(const Run& run, const Cluster& cluster, const EngineOptions& options) {
  return Builder(run, cluster, options).build();
}

}  // namespace rehearse
