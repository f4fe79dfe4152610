// Simulates collective schedules as coupled flows: the lanes of a collective run in parallel, and the phases
// of each lane one after the other. A phase first waits for the latency of its steps; then its single flow
// carries the bytes of all its edges.
#include <algorithm>
#include <memory>

#include "simulator/engine/simulation.hpp"

namespace rehearse {

double Simulation::stage_latency_s(const StageOnNetwork& stage, const TransferCost& cost) const {
  const double step_s =
      stage.kind == Stage::Kind::trees
          ? cost.step_latency_s
          : exposed_latency_s(cost, cost.bytes_per_edge, stage.inverse_bandwidth, options_.chunk_bytes);
  return cost.startup_s + cost.steps * step_s;
}

Simulation::Matched Simulation::match_plan(const TransferClass& transfer, double bytes) {
  const bool alone = options_.fidelity == Fidelity::analytic;
  Matched m;
  m.analytic = is_analytic(transfer);
  for (const std::vector<TransferClass::StageClass>& lane : transfer.lanes) {
    double seconds = 0, alone_s = 0, latency_s = 0;
    std::vector<Matched::StageBytes> stages;
    for (const TransferClass::StageClass& stage : lane) {
      const TransferCost cost = at_latency_factor(
          stage_cost(transfer.algorithm, stage.costs, bytes, options_.protocol, options_.chunk_bytes));
      const double wire_bytes = cost.bytes_per_edge / cost.efficiency;
      const FlowClass& flow = layout_.flows[stage.flow];
      account(stage.flow, cost.bytes_per_edge);
      const double stage_s = stage_latency_s(stage.costs, cost);
      stages.push_back({stage_s + cost.filling_s + cost.ramp_s, {stage.flow, wire_bytes}});
      latency_s += stage_s;
      alone_s += stages.back().delay_s + wire_bytes * flow.own_inverse_bandwidth;
      seconds +=
          stages.back().delay_s + wire_bytes * (alone ? flow.own_inverse_bandwidth : flow.inverse_bandwidth);
    }
    m.alone_s = std::max(m.alone_s, alone_s);
    m.delay_s = std::max(m.delay_s, seconds);
    m.latency_s = std::max(m.latency_s, latency_s);
    if (!m.analytic) m.lanes.push_back(std::move(stages));
  }
  (m.analytic ? used_analytic_ : used_flow_) = true;
  return m;
}

// The caller drives the first lane, and a separate actor drives each of the others.
void Simulation::drive_lanes(int job, Matched matched) {
  struct Lanes {
    Matched matched;
    std::size_t left = 0;
  };
  const auto lanes = std::make_shared<Lanes>(Lanes{std::move(matched), 0});
  lanes->left = lanes->matched.lanes.size();
  const auto run = [this, job, lanes](std::size_t lane) {
    run_lane(job, lanes->matched, lane);
    if (--lanes->left == 0) complete(lanes->matched, now());
  };
  for (std::size_t lane = 1; lane < lanes->matched.lanes.size(); ++lane)
    help(job, [run, lane] { run(lane); });
  run(0);
}

void Simulation::run_lane(int job, const Matched& matched, std::size_t lane) {
  sg::sleep_until(matched.begin_s);
  for (const Matched::StageBytes& stage : matched.lanes[lane]) {
    if (stage.delay_s > 0) sg::s4u::this_actor::sleep_for(stage.delay_s);
    if (stage.flow.bytes <= 0 || layout_.flows[stage.flow.flow].crossings.empty()) continue;
    try {
      carrier_.carry(stage.flow.flow, stage.flow.bytes);
    } catch (const simgrid::NetworkFailureException&) {
      fail_job(job, "a transfer failed: a link on its route died", matched.sides);
    }
  }
}

}  // namespace rehearse
