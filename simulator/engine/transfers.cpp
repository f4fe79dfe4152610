// Matches the sides of transfers and carries them out. The side that comes last drives: it waits for the
// latency, then SimGrid carries the flows; the other sides sleep until it rings.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "models/text/error.hpp"
#include "simulator/engine/simulation.hpp"

namespace rehearse {

bool Simulation::is_analytic(const TransferClass& transfer) const {
  return std::all_of(transfer.flows.begin(), transfer.flows.end(), [&](int f) {
    const FlowClass& flow = layout_.flows[f];
    if (options_.fidelity == Fidelity::analytic) return !flow.always_flow;
    return options_.fidelity == Fidelity::automatic && !flow.contended;
  });
}

double Simulation::step_latency_s(const TransferClass& transfer, const TransferCost& cost) const {
  if (transfer.pairwise || transfer.shape.ring_bandwidth <= 0) return cost.step_latency_s;
  return exposed_latency_s(cost, cost.bytes_per_edge / transfer.channels,
                           transfer.channels / transfer.shape.ring_bandwidth, options_.chunk_bytes);
}

double Simulation::ring_alone_s(const TransferClass& transfer, const TransferCost& cost) const {
  const double wire_bytes = cost.bytes_per_edge / cost.efficiency /
                            (transfer.pairwise ? transfer.shape.ranks - 1 : transfer.channels);
  double slowest_s_per_byte = 0;
  for (int f : transfer.flows)
    slowest_s_per_byte = std::max(slowest_s_per_byte, layout_.flows[f].own_inverse_bandwidth);
  return cost.startup_s + cost.steps * step_latency_s(transfer, cost) + cost.filling_s + cost.ramp_s +
         wire_bytes * slowest_s_per_byte;
}

TransferCost Simulation::at_latency_factor(TransferCost cost) const {
  cost.startup_s *= options_.latency_factor;
  cost.step_latency_s *= options_.latency_factor;
  return cost;
}

void Simulation::account(int flow, double payload_bytes, int messages, bool on_network) {
  const FlowClass& f = layout_.flows[flow];
  for (const FlowClass::Crossing& c : f.crossings) link_bytes_[c.link_class] += payload_bytes * c.weight;
  if (on_network) bytes_total_ += payload_bytes * f.hops * f.members;
  events_ += messages;
}

void Simulation::send_on(int flow, double wire_bytes, Matched& m) {
  if (!m.analytic) {
    m.flows.push_back({flow, wire_bytes});
    used_flow_ = true;
    return;
  }
  const FlowClass& f = layout_.flows[flow];
  m.delay_s +=
      wire_bytes * (options_.fidelity == Fidelity::analytic ? f.own_inverse_bandwidth : f.inverse_bandwidth);
  used_analytic_ = true;
}

Simulation::Matched Simulation::match_message(int number, const Call& send, const Call& receive) {
  const TransferClass& transfer = layout_.transfers[number];
  const TransferCost cost = at_latency_factor(message_cost(send.bytes, transfer.shape, options_.protocol));
  Matched m;
  m.analytic = is_analytic(transfer);
  m.latency_s = m.delay_s = cost.startup_s + cost.steps * cost.step_latency_s;
  const int flow = transfer.flows.front();
  account(flow, send.bytes);
  send_on(flow, cost.bytes_per_edge / cost.efficiency, m);
  m.ahead = runs_ahead_ && !in_time_[number];
  m.begin_s = std::max(send.ready_s, receive.ready_s);
  m.sides = {send.stream, receive.stream};
  for (Stream* side : m.sides) {
    begin_side(*side, m);
    if (sg::s4u::SemaphorePtr turn = turn_of(*side, side->cursor.current())) m.turns.push_back(turn);
  }
  return m;
}

// A read or a write begins when its only side is ready.
Simulation::Matched Simulation::match_access(int number, const Call& call, const Access& access) {
  const TransferClass& transfer = layout_.transfers[number];
  Matched m;
  m.analytic = is_analytic(transfer);
  m.latency_s = m.delay_s = transfer.shape.hop_latency_s * options_.latency_factor;
  const int flow = transfer.flows.front();
  account(flow, call.bytes, 1, access.on_network);
  send_on(flow, call.bytes, m);
  m.ahead = runs_ahead_ && !in_time_[number];
  m.begin_s = call.ready_s;
  m.sides = {call.stream};
  begin_side(*call.stream, m);
  return m;
}

// A side of several transfers begins with the last of them.
void Simulation::begin_side(Stream& side, const Matched& matched) const {
  if (matched.begin_s < side.begin_s) return;
  side.begin_s = matched.begin_s;
  side.latency_s = matched.latency_s;
}

Simulation::Matched Simulation::match_collective(int number, double bytes, CollectiveKind kind) {
  const TransferClass& transfer = layout_.transfers[number];
  Matched m;
  m.analytic = true;
  if (transfer.shape.ranks < 2) return m;
  if (!transfer.lanes.empty()) return match_plan(transfer, bytes);
  const TransferCost cost =
      at_latency_factor(ring_cost(kind, bytes, transfer.shape, options_.protocol, options_.chunk_bytes));
  m.analytic = is_analytic(transfer);
  m.latency_s = cost.startup_s + cost.steps * step_latency_s(transfer, cost);
  m.delay_s = m.latency_s + cost.filling_s + cost.ramp_s;
  // bytes_per_edge is what a member sends: divided among channels, or among its n - 1 peers.
  const double payload =
      cost.bytes_per_edge / (transfer.pairwise ? transfer.shape.ranks - 1 : transfer.channels);
  const double wire_bytes = payload / cost.efficiency;
  double slowest = 0;
  for (int flow : transfer.flows) {
    const FlowClass& f = layout_.flows[flow];
    account(flow, payload);
    slowest = std::max(
        slowest, options_.fidelity == Fidelity::analytic ? f.own_inverse_bandwidth : f.inverse_bandwidth);
    if (!m.analytic) m.flows.push_back({flow, wire_bytes});
  }
  if (m.analytic) m.delay_s += wire_bytes * slowest;
  if (layout_.interferes) m.alone_s = ring_alone_s(transfer, cost);
  (m.analytic ? used_analytic_ : used_flow_) = true;
  return m;
}

void Simulation::exchange(Stream& stream, int number) {
  const Op& op = program(stream).ops[number];
  std::vector<Matched> matched;
  for (std::size_t part = 0; part < op.messages.size(); ++part)
    call_message(stream, op.messages[part], slot(stream, number, static_cast<int>(part)), matched);
  drive(layout_.classes[stream.rank_class].job, std::move(matched));
  wait_for_transfers(stream);
}

void Simulation::call_message(Stream& stream, const Message& message, int own_slot,
                              std::vector<Matched>& matched) {
  const Call call{&stream, amount_here(stream, message.bytes), CollectiveKind::all_reduce, calls_++,
                  stream.ready_s};
  if (message.peer.kind == Peer::Kind::any) {
    ++stream.outstanding;
    if (!take_any(stream, own_slot, matched))
      for (int t : does(stream).transfers[own_slot]) transfers_[t].any = &stream;
    return;
  }
  for (int t : does(stream).transfers[own_slot]) {
    if (message.peer.kind == Peer::Kind::sender && layout_.transfers[t].second_rank != stream.last_sender)
      continue;
    TransferState& state = transfers_[t];
    ++stream.outstanding;
    if (message.access.one_sided) {
      matched.push_back(match_access(t, call, message.access));
      continue;
    }
    if (message.direction == Message::Direction::receive) {
      state.receives.push_back(call);
    } else {
      state.sends.push_back(call);
      if (state.any != nullptr) {
        Stream& receiver = *state.any;
        take_any(receiver, slot(receiver, receiver.cursor.op(), 0), matched);
        continue;
      }
    }
    if (state.sends.empty() || state.receives.empty()) continue;
    matched.push_back(match_message(t, state.sends.front(), state.receives.front()));
    state.sends.pop_front();
    state.receives.pop_front();
  }
}

// Matches a receive from any rank with the send that was called first.
bool Simulation::take_any(Stream& stream, int own_slot, std::vector<Matched>& matched) {
  const std::vector<int>& candidates = does(stream).transfers[own_slot];
  int first = -1;
  for (int t : candidates)
    if (!transfers_[t].sends.empty() &&
        (first < 0 || transfers_[t].sends.front().order < transfers_[first].sends.front().order))
      first = t;
  if (first < 0) return false;
  for (int t : candidates) transfers_[t].any = nullptr;
  stream.last_sender = stream.received_from = layout_.transfers[first].first_rank;
  matched.push_back(match_message(first, transfers_[first].sends.front(),
                                  {&stream, 0, CollectiveKind::all_reduce, 0, now()}));
  transfers_[first].sends.pop_front();
  return true;
}

void Simulation::collective(Stream& stream, int number) {
  if (!runs_beside(stream, number)) return join_collective(stream, number);
  // Its thread blocks occupy the device from now on, whether the other members have come or not.
  set_load(stream, layout_.transfers[does(stream).transfers[slot(stream, number, 0)].front()], 0);
  join_collective(stream, number);
  end_load(stream);
}

void Simulation::join_collective(Stream& stream, int number) {
  const Collective& op = program(stream).ops[number].collective;
  const int t = does(stream).transfers[slot(stream, number, 0)].front();
  const TransferClass& transfer = layout_.transfers[t];
  TransferState& state = transfers_[t];
  if (state.members.empty()) state.members.resize(transfer.participants.size());
  const double size = amount_here(stream, op.bytes);
  const std::size_t place = static_cast<std::size_t>(
      std::lower_bound(transfer.participants.begin(), transfer.participants.end(), stream.rank_class) -
      transfer.participants.begin());
  if (state.members[place].empty()) ++state.called;
  state.members[place].push_back({&stream, size, op.kind, calls_++, stream.ready_s});
  const bool all = state.called == state.members.size(), ahead = runs_ahead_ && !in_time_[t];
  const bool chunks = options_.fidelity == Fidelity::chunk && transfer.shape.ranks > 1 &&
                      course_of(op.kind) == Course::ring && !is_switched(op.used_algorithm());
  Matched m;
  if (all) {
    if (!chunks) m = match_collective(t, size, op.kind);
    m.ahead = ahead;
    for (const std::deque<Call>& calls : state.members)
      m.begin_s = std::max(m.begin_s, calls.front().ready_s);
    for (std::deque<Call>& calls : state.members) {
      Stream* side = calls.front().stream;
      m.sides.push_back(side);
      side->begin_s = m.begin_s;
      if (!chunks) side->latency_s = m.latency_s;
      if (!chunks && runs_beside(*side, side->cursor.op())) set_load(*side, transfer, m.alone_s);
      calls.pop_front();
      if (calls.empty()) --state.called;
    }
  }
  if (ahead && is_analytic(transfer)) return meet(state, m);
  if (chunks) return transfer.steps ? table(stream, number, size) : ring(stream, number);
  ++stream.outstanding;
  if (all && !m.lanes.empty())
    drive_lanes(layout_.classes[stream.rank_class].job, std::move(m));
  else if (all)
    drive(layout_.classes[stream.rank_class].job, {std::move(m)});
  wait_for_transfers(stream);
}

// The members wait for the last one, which knows the end, at a barrier: it takes half the switches between
// actors that bells take.
void Simulation::meet(TransferState& state, const Matched& matched) {
  for (Stream* side : matched.sides) side->carried_s = matched.begin_s + matched.delay_s;
  const std::size_t members = state.members.size();
  if (members < 2) return;
  if (!state.barrier) state.barrier = sg::s4u::Barrier::create(static_cast<unsigned>(members));
  state.barrier->wait();
}

bool Simulation::collective_of_one_class(Stream& stream, int number, double& end_s) {
  const Op& op = program(stream).ops[number];
  const int t = does(stream).transfers[slot(stream, number, 0)].front();
  const TransferClass& transfer = layout_.transfers[t];
  if (transfer.participants.size() != 1 || runs_beside(stream, number) ||
      options_.fidelity == Fidelity::chunk || op.turn >= 0 || !run_.events.empty() || !is_analytic(transfer))
    return false;
  const Matched matched = match_collective(t, amount_here(stream, op.collective.bytes), op.collective.kind);
  stream.latency_s = matched.latency_s;
  end_s = stream.ready_s + matched.delay_s;
  return true;
}

void Simulation::wait_for_transfers(Stream& stream) {
  while (stream.outstanding > 0) stream.bell.wait();
}

void Simulation::complete(const Matched& matched, double end_s) {
  for (Stream* side : matched.sides) {
    side->carried_s = std::max(side->carried_s, end_s);
    if (--side->outstanding == 0) side->bell.ring();
  }
}

void Simulation::help(int job, const std::function<void()>& code) {
  JobState& state = jobs_[job];
  const sg::s4u::ActorPtr actor =
      sg::start_actor(platform_.engine(), "helper", platform_.home(), [code, &state] {
        // Streams wait for the helper; if all of these are endless, nobody needs it.
        sg::s4u::Actor::self()->daemonize();
        code();
        state.helpers.erase(sg::s4u::Actor::self());
      });
  state.helpers.insert(actor.get());
}

// Transfers that start at different times are driven separately: the caller drives the first group, and a
// separate actor drives each of the others. The ends of analytic transfers are known, and only those whose
// sides wait for SimGrid's clock anyway are driven.
void Simulation::drive(int job, std::vector<Matched> matched) {
  std::erase_if(matched, [this](const Matched& m) {
    if (!m.ahead || !m.analytic) return false;
    complete(m, m.begin_s + m.delay_s);
    return true;
  });
  if (matched.size() == 1 && !matched.front().turns.empty()) return drive_in_turn(job, matched.front());
  std::map<std::pair<bool, double>, std::vector<Matched>> groups;
  for (Matched& m : matched) {
    if (!m.turns.empty()) {
      help(job, [this, job, one = std::move(m)] { drive_in_turn(job, one); });
      continue;
    }
    const std::pair<bool, double> key{m.analytic, m.analytic ? 0 : m.begin_s + m.delay_s};
    groups[key].push_back(std::move(m));
  }
  while (groups.size() > 1) {
    const auto last = std::prev(groups.end());
    help(job, [this, job, group = std::move(last->second)] { drive_together(job, group); });
    groups.erase(last);
  }
  if (!groups.empty()) drive_together(job, groups.begin()->second);
}

// A side that needs a turn begins when it gets the turn; for the other side, the transfer is under way all
// the while.
void Simulation::drive_in_turn(int job, const Matched& matched) {
  for (const sg::s4u::SemaphorePtr& turn : matched.turns) turn->acquire();
  for (Stream* side : matched.sides)
    if (turn_of(*side, side->cursor.current())) side->begin_s = now();
  drive_together(job, {matched});
  for (const sg::s4u::SemaphorePtr& turn : matched.turns) turn->release();
}

void Simulation::drive_together(int job, const std::vector<Matched>& matched) {
  const double start = now();
  if (matched.front().analytic) {
    std::vector<const Matched*> by_end;
    for (const Matched& m : matched) by_end.push_back(&m);
    std::stable_sort(by_end.begin(), by_end.end(),
                     [](const Matched* a, const Matched* b) { return a->delay_s < b->delay_s; });
    for (const Matched* m : by_end) {
      const double end_s = std::max(m->begin_s, start) + m->delay_s;
      sg::sleep_until(end_s);
      complete(*m, std::max(end_s, now()));
    }
    return;
  }
  sg::sleep_until(std::max(matched.front().begin_s, start) + matched.front().delay_s);
  struct Carried {
    std::size_t owner = 0;  // index into `matched`
    Matched::FlowBytes flow;
  };
  std::vector<Carried> carried;
  std::vector<std::size_t> left(matched.size(), 0);
  for (std::size_t i = 0; i < matched.size(); ++i) {
    for (const Matched::FlowBytes& f : matched[i].flows) {
      if (f.bytes <= 0 || layout_.flows[f.flow].crossings.empty()) continue;
      carried.push_back({i, f});
      ++left[i];
    }
    if (left[i] == 0) complete(matched[i], now());
  }
  std::size_t failing = carried.empty() ? 0 : carried.front().owner;
  try {
    if (carried.size() == 1) {
      carrier_.carry(carried.front().flow.flow, carried.front().flow.bytes);
      return complete(matched[failing], now());
    }
    std::vector<sg::s4u::CommPtr> comms;
    for (const Carried& c : carried) {
      failing = c.owner;
      comms.push_back(carrier_.start(c.flow.flow, c.flow.bytes));
    }
    while (!comms.empty()) {
      std::size_t ended = 0;
      failing = carried.front().owner;
      if (comms.size() == 1) {
        comms.front()->wait();
        comms.clear();
      } else {
        ended = sg::wait_any(comms);
      }
      const Carried c = carried[ended];
      carried.erase(carried.begin() + static_cast<std::ptrdiff_t>(ended));
      carrier_.ended(c.flow.flow);
      if (--left[c.owner] == 0) complete(matched[c.owner], now());
    }
  } catch (const simgrid::NetworkFailureException&) {
    fail_job(job, "a transfer failed: a link on its route died", matched[failing].sides);
  }
}

}  // namespace rehearse
