// Carries out message tables. An actor for each connection sends its messages in turn. A message is sent once
// the messages that it needs have arrived, the receiver has taken in the one before, and both ends have
// called the collective. Its latency passes during the previous message.
#include <algorithm>

#include "simulator/costs/nccl_constants.hpp"
#include "simulator/engine/progress.hpp"
#include "simulator/engine/simulation.hpp"

namespace rehearse {

namespace {

// Large enough that the rounding of shares has no visible effect.
constexpr std::int64_t kElements = std::int64_t{1} << 40;

}  // namespace

// One call of the collective by all members.
struct Simulation::TableRun {
  const TransferClass* transfer = nullptr;
  MessageTable table;
  double bytes_per_element = 0;
  double latency_s = 0;  // latency of its longest lane
  double alone_s = 0;
  struct StageCost {
    double startup_s = 0, latency_s = 0, efficiency = 1;
    double per_route_s = 0;  // latency per second of latency of the message's route
  };
  std::vector<std::vector<StageCost>> costs;             // [lane][phase]
  std::vector<std::vector<std::size_t>> messages_of;     // by connection: its messages
  std::vector<std::vector<std::size_t>> connections_of;  // by member: those it sends or receives on
  std::vector<double> arrived_s;                         // by message; below 0: not arrived yet
  std::vector<double> called_s;                          // by member; below 0: not called yet
  std::vector<std::size_t> left;  // by member: messages that it has yet to send or receive
  std::vector<Stream*> streams;   // by member
  struct Connection {
    Bell bell;
    std::int64_t awaited = -1;  // number of the message that it waits for; -1: none
  };
  std::deque<Connection> connections;
};

Cut Simulation::cut_of(double bytes) const {
  const auto elements = [&](double piece_bytes) {
    return bytes > 0 && piece_bytes > 0 && piece_bytes < bytes
               ? std::max<std::int64_t>(1, static_cast<std::int64_t>(piece_bytes / bytes * kElements))
               : 0;
  };
  // A tree that is not cut keeps all but one of its levels waiting: nobody would run it that way.
  return {elements(options_.chunk_bytes),
          elements(options_.chunk_bytes > 0 ? options_.chunk_bytes : nccl::kPieceBytes)};
}

// Sets the table of an all-reduce with an algorithm other than ring, and the costs of its phases.
void Simulation::take_plan_table(TableRun& run, double bytes) const {
  const TransferClass& transfer = *run.transfer;
  run.table = message_table(CollectiveKind::all_reduce, *transfer.steps, kElements, cut_of(bytes));
  for (const std::vector<StageOnNetwork>& lane : transfer.plan.lanes) {
    std::vector<TableRun::StageCost>& costs = run.costs.emplace_back();
    double lane_latency_s = 0;
    for (const StageOnNetwork& stage : lane) {
      const TransferCost cost = at_latency_factor(
          stage_cost(transfer.algorithm, stage, bytes, options_.protocol, options_.chunk_bytes));
      lane_latency_s += stage_latency_s(stage, cost);
      costs.push_back({cost.startup_s + cost.ramp_s, cost.step_latency_s, cost.efficiency});
      if (stage.kind != Stage::Kind::trees) continue;
      // Each edge has its part of the longest path's latency, so that the entire path takes what the tree's
      // cost states.
      const double way_s = stage.shape.tree_latency_s;
      costs.back().per_route_s = way_s > 0 ? cost.step_latency_s / way_s : 0;
      costs.back().latency_s = way_s > 0 ? 0 : cost.step_latency_s / stage.steps;
    }
    run.latency_s = std::max(run.latency_s, lane_latency_s);
  }
  run.alone_s = time_alone_s(transfer.plan, bytes, options_.protocol, options_.chunk_bytes);
}

// Sets the table of a ring, which is cut and timed as in ring.cpp. The number of elements divides evenly.
void Simulation::take_ring_table(TableRun& run, CollectiveKind kind, double bytes) const {
  const TransferClass& transfer = *run.transfer;
  const RingPlan plan = plan_ring(transfer, kind, bytes);
  const auto lanes = static_cast<std::int64_t>(transfer.steps->lanes.size());
  const std::int64_t pieces = transfer.steps->members * lanes * plan.pieces_per_step;
  const Cut cut{std::max<std::int64_t>(1, kElements / pieces), 0};
  run.table = message_table(kind, *transfer.steps, cut.most * pieces, cut);
  const TableRun::StageCost cost{plan.startup_s, plan.latency_s, plan.efficiency};
  run.costs.assign(static_cast<std::size_t>(lanes), {cost});
  run.latency_s = plan.total_latency_s;
  run.alone_s = plan.alone_s;
}

std::shared_ptr<Simulation::TableRun> Simulation::begin_table(const TransferClass& transfer,
                                                              CollectiveKind kind, double bytes) {
  const auto run = std::make_shared<TableRun>();
  run->transfer = &transfer;
  if (transfer.algorithm == Algorithm::ring)
    take_ring_table(*run, kind, bytes);
  else
    take_plan_table(*run, bytes);
  const MessageTable& table = run->table;
  run->bytes_per_element = bytes / static_cast<double>(table.elements);
  const auto members = static_cast<std::size_t>(table.members);
  run->messages_of.resize(table.connections.size());
  run->left.assign(members, 0);
  std::vector<double> payload(table.connections.size(), 0);
  for (std::size_t m = 0; m < table.messages.size(); ++m) {
    const MessageTable::Message& message = table.messages[m];
    run->messages_of[message.connection].push_back(m);
    ++run->left[table.connections[message.connection].from];
    ++run->left[table.connections[message.connection].to];
    payload[message.connection] += static_cast<double>(message.end - message.begin) * run->bytes_per_element;
  }
  run->arrived_s.assign(table.messages.size(), -1);
  run->called_s.assign(members, -1);
  run->streams.assign(members, nullptr);
  run->connections_of.resize(members);
  run->connections.resize(table.connections.size());
  for (std::size_t c = 0; c < table.connections.size(); ++c) {
    account(transfer.connections[c], payload[c], static_cast<int>(run->messages_of[c].size()));
    run->connections_of[table.connections[c].from].push_back(c);
    run->connections_of[table.connections[c].to].push_back(c);
  }
  return run;
}

void Simulation::table(Stream& stream, int number, double bytes) {
  const int t = does(stream).transfers[slot(stream, number, 0)].front();
  const TransferClass& transfer = layout_.transfers[t];
  TransferState& state = transfers_[t];
  const auto member = static_cast<std::size_t>(
      std::find(transfer.member_classes.begin(), transfer.member_classes.end(), stream.rank_class) -
      transfer.member_classes.begin());
  state.next_run.resize(transfer.member_classes.size(), 0);
  const std::size_t call = state.next_run[member]++;
  const bool first = call == state.runs.size();
  if (first) state.runs.push_back(begin_table(transfer, program(stream).ops[number].collective.kind, bytes));
  const std::shared_ptr<TableRun> run = state.runs[call];
  if (std::all_of(state.next_run.begin(), state.next_run.end(), [&](std::size_t n) { return n > call; }))
    state.runs[call].reset();  // no other member will ask for it
  used_chunk_ = true;
  run->called_s[member] = now();
  stream.latency_s = run->latency_s;
  if (runs_beside(stream, number)) set_load(stream, transfer, run->alone_s);
  run->streams[member] = &stream;
  stream.outstanding = 1;
  if (run->left[member] == 0) stream.outstanding = 0;
  // From here on, other actors may run.
  const int job = layout_.classes[stream.rank_class].job;
  if (first)
    for (std::size_t c = 0; c < run->connections.size(); ++c)
      help(job, [this, job, run, c] { run_connection(job, *run, c); });
  for (std::size_t c : run->connections_of[member]) run->connections[c].bell.ring();
  wait_for_transfers(stream);
}

void Simulation::run_connection(int job, TableRun& run, std::size_t number) {
  const Connection& ends = run.table.connections[number];
  TableRun::Connection& own = run.connections[number];
  const int flow = run.transfer->connections[number];
  while (run.called_s[ends.from] < 0 || run.called_s[ends.to] < 0) own.bell.wait();
  for (const std::size_t m : run.messages_of[number]) {
    const MessageTable::Message& message = run.table.messages[m];
    double ready_s = std::max(run.called_s[ends.from], run.called_s[ends.to]);
    const auto await = [&](std::int64_t other) {
      own.awaited = other;
      while (run.arrived_s[other] < 0) own.bell.wait();
      ready_s = std::max(ready_s, run.arrived_s[other]);
    };
    for (std::int64_t k = run.table.first_needed[m]; k < run.table.first_needed[m + 1]; ++k)
      await(run.table.needed[k]);
    if (message.behind >= 0) await(message.behind);
    own.awaited = -1;
    const TableRun::StageCost& cost = run.costs[message.lane][message.stage];
    const double latency_s = cost.latency_s + cost.per_route_s * layout_.flows[flow].latency_s;
    const double begin_s = ready_s + latency_s + (message.opens ? cost.startup_s : 0);
    if (begin_s > now()) sg::s4u::this_actor::sleep_for(begin_s - now());
    const double sent_s = now(),
                 bytes = static_cast<double>(message.end - message.begin) * run.bytes_per_element,
                 wire_bytes = bytes / cost.efficiency;
    if (wire_bytes > 0 && !layout_.flows[flow].crossings.empty()) {
      try {
        carrier_.carry(flow, wire_bytes);
      } catch (const simgrid::NetworkFailureException&) {
        fail_job(job, "a transfer failed: a link on its route died",
                 {run.streams[ends.from], run.streams[ends.to]});
      }
    }
    run.arrived_s[m] = now();
    if (options_.on_message)
      options_.on_message({run.transfer->member_classes[ends.from], run.transfer->member_classes[ends.to],
                           bytes, sent_s, run.arrived_s[m]});
    advance_stage();
    for (const int end : {ends.to, ends.from})
      for (std::size_t c : run.connections_of[end])  // connections that wait for it begin or end there
        if (run.connections[c].awaited == static_cast<std::int64_t>(m)) run.connections[c].bell.ring();
    for (const int end : {ends.from, ends.to})
      if (--run.left[end] == 0) {
        run.streams[end]->outstanding = 0;
        run.streams[end]->bell.ring();
      }
  }
}

}  // namespace rehearse
