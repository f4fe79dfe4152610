// Simulates rings in chunks: every piece of every step is a message. Each place of a ring receives from the
// previous one and may send a piece on once it has received (and reduced) it. This is the order of the ring's
// message table, which is not built because it is long. With EngineOptions::ring_tables it is built, and
// tests compare the two.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/text/error.hpp"
#include "simulator/engine/progress.hpp"
#include "simulator/engine/simulation.hpp"

namespace rehearse {

Simulation::RingPlan Simulation::plan_ring(const TransferClass& transfer, CollectiveKind kind,
                                           double bytes) const {
  const TransferCost cost =
      at_latency_factor(ring_cost(kind, bytes, transfer.shape, options_.protocol, options_.chunk_bytes));
  RingPlan plan;
  plan.steps = cost.steps;
  // All places begin at once, even those of a chain, so filling is part of the startup.
  plan.startup_s = cost.startup_s + cost.filling_s + cost.ramp_s;
  plan.latency_s = cost.step_latency_s;
  plan.alone_s = ring_alone_s(transfer, cost);
  plan.total_latency_s = cost.startup_s + cost.steps * step_latency_s(transfer, cost);
  const double step_bytes = cost.bytes_per_edge / std::max(1, cost.steps) / transfer.channels;
  if (options_.chunk_bytes > 0)
    plan.pieces_per_step =
        static_cast<int>(std::clamp(std::ceil(step_bytes / options_.chunk_bytes), 1.0, 1e9));
  plan.payload_per_piece = step_bytes / plan.pieces_per_step;
  plan.efficiency = cost.efficiency;
  plan.piece_bytes = plan.payload_per_piece / cost.efficiency;
  return plan;
}

double Simulation::chunk_messages() const {
  double messages = 0;
  for (const Layout::Class& c : layout_.classes)
    for (std::size_t ph = 0; ph < c.phases.size(); ++ph) {
      const ClassProgram& does = c.phases[ph];
      if (does.program < 0) continue;
      const Phase& phase = run_.jobs[c.job].phases[ph];
      const Program& program = phase.schedule->programs[does.program];
      for (std::size_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        if (op.kind != OpKind::collective) continue;
        const int own_slot = layout_.communication[c.job][ph]->slot(does.program, static_cast<int>(i), 0);
        if (does.transfers[own_slot].empty()) continue;
        const double bytes = op.collective.bytes.at(phase.schedule->roles[c.role], c.ranks.front());
        const TransferClass& transfer = layout_.transfers[does.transfers[own_slot].front()];
        if (transfer.steps) {  // counted once, not for each member
          constexpr double kElements = 1ull << 40;
          if (transfer.participants.front() == static_cast<int>(&c - layout_.classes.data()))
            messages += message_count(*transfer.steps, kElements, cut_of(bytes)) * phase.repeats;
          continue;
        }
        const RingPlan plan =
            plan_ring(layout_.transfers[does.transfers[own_slot].front()], op.collective.kind, bytes);
        messages += 1.0 * plan.steps * plan.pieces_per_step *
                    static_cast<double>(does.positions[own_slot].size()) * phase.repeats;
      }
    }
  return messages;
}

void Simulation::refuse_too_many_messages(double messages) {
  constexpr double kMost = 5e7;  // takes some minutes
  if (messages > kMost)
    throw RunError(
        fmt::format("fidelity \"chunk\" would send {:.3g} messages; at most {:.3g}: choose a larger "
                    "chunk_kb, or fidelity \"flow\"",
                    messages, kMost));
}

void Simulation::ring(Stream& stream, int number) {
  const Collective& op = program(stream).ops[number].collective;
  const int place_slot = slot(stream, number, 0);
  const RingPlan plan = plan_ring(layout_.transfers[does(stream).transfers[place_slot].front()], op.kind,
                                  amount_here(stream, op.bytes));
  used_chunk_ = true;
  stream.latency_s = plan.total_latency_s;
  if (runs_beside(stream, number))
    set_load(stream, layout_.transfers[does(stream).transfers[place_slot].front()], plan.alone_s);
  if (plan.startup_s > 0) sg::s4u::this_actor::sleep_for(plan.startup_s);
  const std::vector<int>& places = does(stream).positions[place_slot];
  stream.outstanding += static_cast<int>(places.size()) - 1;
  for (std::size_t i = 1; i < places.size(); ++i)
    help(layout_.classes[stream.rank_class].job, [this, &stream, place = places[i], plan] {
      run_position(stream, place, plan);
      if (--stream.outstanding == 0) stream.bell.ring();
    });
  run_position(stream, places.front(), plan);
  wait_for_transfers(stream);
}

void Simulation::run_position(Stream& stream, int number, const RingPlan& plan) {
  const RingPosition& place = layout_.positions[number];
  PositionState& own = positions_[number];
  PositionState& previous = positions_[place.previous];
  PositionState& next = positions_[place.next];
  const FlowClass& flow = layout_.flows[place.flow];
  const int per_step = plan.pieces_per_step, pieces = plan.steps * per_step;
  const double start_s = now(), latency = plan.latency_s;
  own.ready_s.assign(static_cast<std::size_t>(std::min(per_step, pieces)), start_s);
  own.got_s.assign(static_cast<std::size_t>(per_step), start_s);
  own.sent = own.base + std::min(per_step, pieces);
  next.bell.ring();
  for (int q = 0; q < pieces; ++q) {
    // The receive is posted once the place's piece of the previous step has arrived. The latency is slept
    // through before checking whether the sender was ready, since usually it was.
    double& got = own.got_s[static_cast<std::size_t>(q % per_step)];  // arrival of the previous step's piece
    const double posted = got;
    if (posted + latency > now()) sg::s4u::this_actor::sleep_for(posted + latency - now());
    while (previous.sent <= own.base + q) own.bell.wait();
    const double begin = std::max(posted, previous.ready_s[q]) + latency;
    if (begin > now()) sg::s4u::this_actor::sleep_for(begin - now());
    const double sent_s = now();
    if (plan.piece_bytes > 0 && !flow.crossings.empty()) {
      try {
        carrier_.carry(place.flow, plan.piece_bytes);
      } catch (const simgrid::NetworkFailureException&) {
        fail_job(layout_.classes[stream.rank_class].job, "a transfer failed: a link on its route died",
                 {&stream});
      }
    }
    got = now();
    if (options_.on_message)
      options_.on_message({layout_.positions[place.previous].rank_class, place.rank_class,
                           plan.payload_per_piece, sent_s, got});
    advance_stage();
    own.received = own.base + q + 1;
    if (q + per_step < pieces) {
      own.ready_s.push_back(got);
      own.sent = own.base + q + per_step + 1;
      next.bell.ring();
    }
  }
  account(place.flow, plan.payload_per_piece * pieces, pieces);
  previous.bell.ring();
  while (next.received < own.base + pieces) own.bell.wait();
  own.base += pieces;
}

}  // namespace rehearse
