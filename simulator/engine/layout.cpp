#include "simulator/engine/layout.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "simulator/costs/compute.hpp"
#include "simulator/engine/concurrency.hpp"
#include "simulator/engine/flow_graph.hpp"
#include "simulator/engine/limiting_links.hpp"
#include "simulator/engine/message_stall.hpp"
#include "simulator/engine/progress.hpp"

namespace rehearse {

namespace {

// Turns the graph and its partition into classes: what is simulated, and what each class represents.
class Quotient {
public:
  Quotient(const Run& run, const Cluster& cluster, FlowGraph graph, const EngineOptions& options)
      : run_(run),
        cluster_(cluster),
        g_(std::move(graph)),
        shared_(options.shared_links.begin(), options.shared_links.end()),
        launches_(options.launches),
        options_(options) {}

  Layout make(const Partition& p) {
    layout_.communication = g_.communication;
    index_programs();
    make_classes(p);
    make_links(p);
    make_flows(p);
    make_transfers(p);
    make_positions(p);
    make_programs();
    return std::move(layout_);
  }

private:
  void index_programs() {
    for (const Job& job : run_.jobs) {
      layout_.index.emplace_back();
      for (const Phase& phase : job.phases) {
        layout_.index.back().emplace_back();
        for (const Program& program : phase.schedule->programs)
          layout_.index.back().back().emplace_back(*phase.schedule, program);
      }
    }
  }

  // Numbers the classes of a range of nodes from 0, in the order of their first members; returns how many
  // there are.
  template <class Visit>
  static int number_classes(const std::vector<int>& classes, std::size_t begin, std::size_t end,
                            Visit visit) {
    std::unordered_map<int, int> numbers;
    for (std::size_t n = begin; n < end; ++n)
      visit(n, numbers.try_emplace(classes[n], static_cast<int>(numbers.size())).first->second);
    return static_cast<int>(numbers.size());
  }

  void make_classes(const Partition& p) {
    rank_class_.resize(g_.ranks.size());
    number_classes(p.node_class, 0, g_.ranks.size(), [&](std::size_t n, int number) {
      rank_class_[n] = number;
      if (number == static_cast<int>(layout_.classes.size())) {
        layout_.classes.push_back({g_.ranks[n].job, g_.ranks[n].role, {}, g_.ranks[n].endpoint, {}});
        representative_rank_.push_back(static_cast<int>(n));
      }
      if (g_.symmetry.copies() == 1) layout_.classes[number].ranks.push_back(g_.ranks[n].rank);
    });
    if (g_.symmetry.copies() == 1) return;
    const int all = static_cast<int>(g_.ranks.size()) * g_.symmetry.copies();
    for (int rank = 0; rank < all; ++rank)
      layout_.classes[rank_class_[g_.symmetry.number_of(rank)]].ranks.push_back(rank);
  }

  void make_links(const Partition& p) {
    link_class_.resize(g_.links.size());
    number_classes(p.node_class, g_.first_link_node, p.node_class.size(), [&](std::size_t n, int number) {
      const LinkId link = g_.links[n - g_.first_link_node];
      link_class_[n - g_.first_link_node] = number;
      if (number == static_cast<int>(layout_.links.size()))
        layout_.links.push_back({link, 0, cluster_.bandwidth(link)});
      layout_.links[number].members += g_.symmetry.copies();
      layout_.link_class_of.emplace_back(link, number);
    });
    std::sort(layout_.link_class_of.begin(), layout_.link_class_of.end());
  }

  void make_flows(const Partition& p) {
    flow_class_.resize(g_.flows.size());
    std::unordered_map<int, int> numbers;
    std::vector<int> representative;
    for (std::size_t f = 0; f < g_.flows.size(); ++f) {
      const int number =
          numbers.try_emplace(p.edge_class[g_.flows[f].edge], static_cast<int>(numbers.size())).first->second;
      flow_class_[f] = number;
      if (number == static_cast<int>(layout_.flows.size())) {
        FlowClass flow;
        flow.latency_s = g_.flows[f].latency_s;
        flow.hops = g_.flows[f].hops;
        flow.contended = g_.flows[f].may_overlap;
        flow.members = 0;
        flow.most_bytes_per_s =
            g_.transfers[g_.flows[f].transfer].access.most_bytes_per_s * options_.input_speed;
        layout_.flows.push_back(flow);
        representative.push_back(static_cast<int>(f));
      }
      layout_.flows[number].members += g_.copies_of(g_.transfers[g_.flows[f].transfer]);
    }
    // weight: how often all flows of a class together cross the representative link of each link class. own:
    // how often the flows of one transfer cross a link of that class.
    std::vector<std::map<int, int>> weight(layout_.flows.size()), own(layout_.flows.size());
    std::vector<std::set<int>> users(
        layout_.links.size());  // flow classes; a lane's flows, which take turns, count as one user
    const auto user = [&](std::size_t f) {
      const int lane = g_.flows[f].lane;
      return lane < 0 ? flow_class_[f] : -1 - p.node_class[g_.lanes[lane].node];
    };
    std::unordered_map<int, std::vector<std::pair<int, int>>> link_weights_of_transfer;
    for (std::size_t f = 0; f < g_.flows.size(); ++f) {
      const int e = g_.flows[f].edge;
      for (std::int64_t t = g_.graph.first_touch[e]; t < g_.graph.first_touch[e + 1]; ++t) {
        const Hypergraph::Touch& touch = g_.graph.touches[t];
        if (touch.node < g_.first_link_node) continue;
        const int link = touch.node - g_.first_link_node, times = static_cast<int>(touch.label - kLinkLabel);
        const int link_class = link_class_[link];
        users[link_class].insert(user(f));
        if (g_.links[link] == layout_.links[link_class].representative)
          weight[flow_class_[f]][link_class] += times;
      }
    }
    std::map<std::pair<int, int>, std::map<int, int>> put_on_links;  // [transfer and phase][link node]
    for (std::size_t c = 0; c < layout_.flows.size(); ++c) {
      const FlowGraph::Flow& first = g_.flows[representative[c]];
      // How often the flow's own transfer crosses each of the flow's links (channels of a collective may
      // share links; lanes are taken to run the same phase at the same time).
      const auto [entry, fresh] = put_on_links.try_emplace({first.transfer, first.stage});
      std::map<int, int>& on_link = entry->second;
      for (int f : fresh ? g_.transfers[first.transfer].flows : std::vector<int>{}) {
        if (g_.flows[f].stage != first.stage) continue;
        for (std::int64_t t = g_.graph.first_touch[g_.flows[f].edge];
             t < g_.graph.first_touch[g_.flows[f].edge + 1]; ++t)
          if (g_.graph.touches[t].node >= g_.first_link_node)
            on_link[g_.graph.touches[t].node] += static_cast<int>(g_.graph.touches[t].label - kLinkLabel);
      }
      for (std::int64_t t = g_.graph.first_touch[first.edge]; t < g_.graph.first_touch[first.edge + 1]; ++t) {
        const int node = g_.graph.touches[t].node;
        if (node < g_.first_link_node) continue;
        int& most = own[c][link_class_[node - g_.first_link_node]];
        most = std::max(most, on_link[node]);
      }
      FlowClass& flow = layout_.flows[c];
      if (flow.most_bytes_per_s > 0)
        flow.inverse_bandwidth = flow.own_inverse_bandwidth = 1 / flow.most_bytes_per_s;
      for (const auto& [link_class, times] : weight[c]) {
        FlowClass::Crossing crossing{link_class, times, own[c][link_class]};
        flow.crossings.push_back(crossing);
        const LinkClass& link = layout_.links[link_class];
        flow.inverse_bandwidth = std::max(flow.inverse_bandwidth, times / link.bandwidth);
        flow.own_inverse_bandwidth =
            std::max(flow.own_inverse_bandwidth, crossing.own_weight / link.bandwidth);
        flow.contended |= users[link_class].size() > 1;
        if (g_.changing_links.count(link.representative) > 0 || shared_.count(link.representative) > 0)
          flow.contended = flow.always_flow = true;
      }
    }
  }

  void make_transfers(const Partition& p) {
    transfer_class_.resize(g_.transfers.size());
    std::map<std::pair<bool, int>, int> numbers;  // (collective, class of its node or edge)
    for (std::size_t n = 0; n < g_.transfers.size(); ++n) {
      const FlowGraph::TransferInfo& info = g_.transfers[n];
      const bool collective = info.node >= 0;
      const std::pair<bool, int> key{collective,
                                     collective ? p.node_class[info.node] : p.edge_class[info.edge]};
      const int number = numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second;
      transfer_class_[n] = number;
      if (number < static_cast<int>(layout_.transfers.size())) {
        layout_.transfers[number].members += g_.copies_of(info);
        continue;
      }
      TransferClass transfer;
      transfer.members = g_.copies_of(info);
      transfer.collective = collective;
      transfer.pairwise = info.course == Course::pairs;
      transfer.channels = info.channels;
      transfer.shape = info.shape;
      transfer.first_rank = g_.ranks[info.ranks[0]].rank;
      transfer.second_rank = g_.ranks[info.ranks.back()].rank;
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
        take_plan(p, info, transfer);
      }
      layout_.transfers.push_back(std::move(transfer));
    }
  }

  void take_plan(const Partition& p, const FlowGraph::TransferInfo& info, TransferClass& transfer) const {
    transfer.algorithm = info.algorithm;
    std::set<int> seen;
    for (std::size_t l = 0; l < info.lanes.size(); ++l) {
      const FlowGraph::LaneInfo& lane = g_.lanes[info.lanes[l]];
      if (!seen.insert(p.node_class[lane.node]).second) continue;
      auto& stages = transfer.lanes.emplace_back();
      for (std::size_t s = 0; s < lane.flows.size(); ++s)
        stages.push_back({flow_class_[lane.flows[s]], info.plan.lanes[l][s]});
    }
    if (!info.steps) return;
    transfer.steps = info.steps;
    transfer.plan = info.plan;
    for (int f : info.flows) transfer.connections.push_back(flow_class_[f]);
    for (int r : info.ranks) transfer.member_classes.push_back(rank_class_[r]);
  }

  void make_positions(const Partition& p) {
    std::unordered_map<int, int> numbers;
    std::vector<int> representative;
    position_class_.resize(g_.places.size());
    for (std::size_t i = 0; i < g_.places.size(); ++i) {
      const int number =
          numbers.try_emplace(p.node_class[g_.places[i].node], static_cast<int>(numbers.size()))
              .first->second;
      position_class_[i] = number;
      if (number == static_cast<int>(representative.size())) representative.push_back(static_cast<int>(i));
    }
    for (int i : representative) {
      const FlowGraph::Place& place = g_.places[i];
      layout_.positions.push_back({position_class_[g_.place_of_node[place.previous]],
                                   position_class_[g_.place_of_node[place.next]], flow_class_[place.flow],
                                   rank_class_[place.rank_node]});
    }
  }

  // Returns how long a process takes to issue a work item: while the device waits for it or for data, it
  // issues nothing. If launches block, the device's time, to which these waits belong, adds to that of the
  // process.
  double issue_time_s(const Work& work, double stall) const {
    const double waits_s = launches_.blocking ? 0 : process_wait_s(work) + data_wait_s(work);
    return launch_time_s(launches_, work) * stall + waits_s;
  }

  // Processors run their kernels themselves, so there a process only has the work that it does once per step.
  void add_launches(ClassProgram& does, const Job& job, const Schedule& schedule,
                    const Device& device) const {
    const Program& program = schedule.programs[does.program];
    const bool issues = device.compute_capability > 0;
    if (!(issues ? launches_.any() : launches_.step_s > 0)) return;
    does.launch_s.assign(program.ops.size(), 0);
    if (!issues) return;
    if (launches_.waits_for_rows) does.waits.assign(program.ops.size(), false);
    double others_s = 0;
    const double stall =
        stall_factor(launches_.message_stall, schedule.roles[kWorkers], job.endpoints, cluster_);
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.ops[i];
      const double own_s = op.kind == OpKind::compute ? issue_time_s(schedule.works[op.work], stall)
                           : op.kind == OpKind::collective || op.kind == OpKind::exchange
                               ? launches_.collective_s * stall
                               : 0;
      others_s += own_s;
      if (op.stream != 0) continue;
      does.launch_s[i] = others_s;
      others_s = 0;
      if (op.kind == OpKind::compute && (op.pass == Pass::forward || op.pass == Pass::recompute) &&
          waits_for_rows(launches_, schedule.works[op.work]))
        does.waits[i] = true;
    }
  }

  // Returns computes_beside_collectives() of a program, which is the same for all its classes; empty if true
  // for no op.
  const std::vector<bool>& beside_of(int job, std::size_t phase, int program) {
    const auto [entry, fresh] = beside_.try_emplace({job, phase, program});
    std::vector<bool>& beside = entry->second;
    if (!fresh) return beside;
    beside = computes_beside_collectives(run_.jobs[job].phases[phase].schedule->programs[program],
                                         layout_.index[job][phase][program]);
    if (std::none_of(beside.begin(), beside.end(), [](bool b) { return b; })) beside.clear();
    return beside;
  }

  void make_programs() {
    std::map<std::pair<int, int>, std::set<int>> positions_of;  // (rank node, transfer) -> position classes
    for (std::size_t i = 0; i < g_.places.size(); ++i)
      positions_of[{g_.places[i].rank_node, g_.places[i].transfer}].insert(position_class_[i]);
    for (std::size_t c = 0; c < layout_.classes.size(); ++c) {
      Layout::Class& rank_class = layout_.classes[c];
      const int node = representative_rank_[c];
      const Job& job = run_.jobs[rank_class.job];
      const Device device = device_at(cluster_, rank_class.endpoint);
      const double speed = cluster_.device_factor(rank_class.endpoint);
      for (std::size_t ph = 0; ph < job.phases.size(); ++ph) {
        ClassProgram does;
        const Schedule& schedule = *job.phases[ph].schedule;
        if (in_phase(job.phases[ph], rank_class.role, g_.ranks[node].rank)) {
          const Communication& talk = *layout_.communication[rank_class.job][ph];
          const int phase_rank = schedule.first_rank(rank_class.role) + g_.ranks[node].rank;
          does.program = talk.program_of_rank(phase_rank);
          const int first = g_.first_transfer[{rank_class.job, static_cast<int>(ph)}];
          const std::size_t slots = talk.slots_of(does.program).size();
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
          if (rank_class.role == kWorkers) add_launches(does, job, schedule, device);
          if (options_.interference.applies(options_.protocol, device)) {
            does.beside = beside_of(rank_class.job, ph, does.program);
            layout_.interferes |= !does.beside.empty();
          }
        }
        rank_class.phases.push_back(std::move(does));
      }
    }
  }

  const Run& run_;
  const Cluster& cluster_;
  FlowGraph g_;
  std::set<LinkId> shared_;
  HostLaunches launches_;
  const EngineOptions& options_;
  std::map<std::tuple<int, std::size_t, int>, std::vector<bool>> beside_;
  Layout layout_;
  std::vector<int> rank_class_, representative_rank_, link_class_, flow_class_, transfer_class_,
      position_class_;
};

}  // namespace

int Layout::class_of_link(LinkId link) const {
  const auto it = std::lower_bound(link_class_of.begin(), link_class_of.end(), std::pair(link, -1));
  return it == link_class_of.end() || it->first != link ? -1 : it->second;
}

Layout lay_out(const Run& run, const Cluster& cluster, const EngineOptions& options) {
  FlowGraph graph = build_flow_graph(run, cluster, options);
  begin_stage(SimulationStage::ranks, 0);
  const auto partition = [&] {
    if (!options.fold || !graph.foldable) return discrete_partition(graph.graph);
    // Events change which links limit flows; messages of chunks are alone on their links at some times.
    if (!run.events.empty() || options.fidelity == Fidelity::chunk)
      return coarsest_equitable_partition(graph.graph);
    return partition_by_limiting_links(graph, cluster,
                                       {options.shared_links.begin(), options.shared_links.end()});
  };
  const Partition p = partition();
  return Quotient(run, cluster, std::move(graph), options).make(p);
}

}  // namespace rehearse
