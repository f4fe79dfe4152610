#include "simulator/planner/layer_times.hpp"

#include <algorithm>
#include <numeric>

#include "models/kernels.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/strategies/programs/ops.hpp"
#include "simulator/strategies/programs/pass_tensors.hpp"
#include "simulator/strategies/step_plan.hpp"

namespace rehearse {

namespace {

void add_issue_times(const HostLaunches& launches, const LayerCost& cost, Precision precision,
                     LayerTimes& times) {
  Work work;
  work.precision = precision;
  work.kernels = cost.forward;
  times.issue_forward_s += launch_time_s(launches, work);
  work.kernels = cost.recompute;
  for (const auto* pass : {&cost.backward_input, &cost.backward_weight})
    work.kernels.insert(work.kernels.end(), pass->begin(), pass->end());
  times.issue_backward_s += launch_time_s(launches, work);
}

}  // namespace

double LayerTimer::kernels_s(const std::vector<Kernel>& kernels, Precision precision) {
  double seconds = 0;
  for (const Kernel& k : kernels) {
    if (k.kind == Kernel::Kind::fixed) {
      seconds += (k.seconds + k.wait_s + k.data_wait_s) * k.count;
      continue;
    }
    const int flags = static_cast<int>(k.kind) + 8 * static_cast<int>(k.fused) + 32 * (k.backward ? 1 : 0) +
                      64 * (k.wide ? 1 : 0) + 128 * static_cast<int>(precision);
    const auto [known, fresh] =
        known_.try_emplace({flags, k.m, k.n, k.k, k.batch, k.bytes, k.winograd.m, k.winograd.n});
    if (fresh) {
      known->second.one = k;
      known->second.one.count = 1;
      known->second.one_s = kernel_time_s(known->second.one, cluster_.node().device, precision);
    }
    known->second.model_s += known->second.one_s * k.count;
    seconds += known->second.one_s * k.count;
  }
  return seconds;
}

ModelTimes LayerTimer::times(const Scenario& scenario) {
  StepPlan plan = begin_step_plan(scenario, cut_model(scenario));
  plan.endpoints.resize(static_cast<std::size_t>(plan.schedule.roles.front().size()));
  std::iota(plan.endpoints.begin(), plan.endpoints.end(), 0);
  const Walk& walk = plan.walk;
  const Precision precision = scenario.training.precision;
  const StrategyChoice& strategy = scenario.strategy;
  const HostLaunches& launches = scenario.engine.launches;
  const bool issues = launches.any() && cluster_.node().device.compute_capability > 0;
  Program worker;
  worker.streams = {"compute"};

  // Which collectives run beside computation (simulator/strategies/programs/overlap.hpp): those of all
  // passes, or those of backward passes, which then run beside the gradients of weights.
  const bool all_overlap = strategy.overlap_passes || strategy.tensor_overlap == TensorOverlap::chunks;
  const bool beside_weights = strategy.tensor_overlap == TensorOverlap::weight_gradients;
  std::map<std::tuple<CollectiveKind, std::vector<int>, double>, double> known;
  const auto change_s = [&](const ValueChange& change, Pass pass) {
    const Collective its = change_op(plan, worker, change, pass).collective;
    double bytes = its.bytes.base;
    for (const double value : its.bytes.values) bytes = std::max(bytes, value);
    const auto [entry, fresh] = known.try_emplace({its.kind, change.change.factors, bytes}, 0);
    if (fresh) {
      const std::vector<Endpoint> members = group_members(plan.schedule.roles.front(), its.group, 0);
      entry->second = collectives_.alone_s(its.kind, its.used_algorithm(), its.channels, members, bytes);
    }
    return entry->second;
  };
  double issued_s = 0;  // time of the process to issue the changes that were timed since it was 0
  const auto changes_s = [&](const std::vector<ValueChange>& changes, Pass pass) {
    double seconds = 0;
    for (const ValueChange& change : changes) seconds += change_s(change, pass);
    if (issues) issued_s += static_cast<double>(changes.size()) * launches.collective_s;
    return seconds;
  };

  ModelTimes model;
  for (auto& [key, kernel] : known_) kernel.model_s = 0;
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    LayerTimes times;
    const int first = walk.first_segment[i], end = walk.first_segment[i + 1];
    const bool last = i + 1 == plan.layers.size();
    double input_s = 0, weight_s = 0, norms_s = 0;
    for (int s = first; s < end; ++s) {
      const Segment& segment = *walk.segments[static_cast<std::size_t>(s)];
      const LayerCost& cost = segment.cost;
      times.forward_s += kernels_s(cost.forward, precision);
      times.recompute_s += kernels_s(cost.recompute, precision);
      input_s += kernels_s(cost.backward_input, precision);
      (leaves_weights(segment) ? weight_s : norms_s) += kernels_s(cost.backward_weight, precision);
      if (issues) add_issue_times(launches, cost, precision, times);
    }
    times.kernels_s = times.forward_s + times.recompute_s + input_s + weight_s + norms_s;
    double to_inputs_s = 0, to_weights_s = 0;  // collectives of the backward pass
    issued_s = 0;
    for (int s = first; s < end + (last ? 1 : 0); ++s) {
      const Site& site = walk.sites[static_cast<std::size_t>(s)];
      const double forward_s = changes_s(site.forward, Pass::forward),
                   again_s = site.repeated && s > first ? forward_s : 0;
      to_inputs_s +=
          changes_s(site.backward, Pass::backward) + changes_s(site.again_for_inputs, Pass::backward);
      to_weights_s += changes_s(site.again, Pass::backward);
      (all_overlap ? times.overlapped_s : times.forward_s) += forward_s;
      (all_overlap ? times.overlapped_s : times.recompute_s) += again_s;
    }
    times.issue_backward_s += issued_s;
    times.backward_input_s = input_s + norms_s;
    times.backward_weight_s = weight_s;
    times.backward_s = input_s + norms_s + weight_s;
    if (all_overlap) {
      times.overlapped_s += to_inputs_s + to_weights_s;
    } else if (beside_weights) {
      times.backward_s = input_s + norms_s + std::max(weight_s, to_inputs_s + to_weights_s);
    } else {
      times.backward_input_s += to_inputs_s;
      times.backward_weight_s += to_weights_s;
      times.backward_s += to_inputs_s + to_weights_s;
    }
    times.parameters = plan.layers[i].parameters;
    if (!plan.expert_parameters.empty()) times.expert_parameters = plan.expert_parameters[i];
    times.saved_bytes = plan.layers[i].saved_bytes;
    if (!last) times.boundary_bytes = boundary_bytes(plan, static_cast<int>(i));
    model.layers.push_back(times);
  }
  for (const auto& [key, kernel] : known_)
    if (kernel.model_s > 0) model.kernels.push_back({kernel.one, kernel.model_s});
  model.tied_parameters = shared_table_parameters(scenario);
  return model;
}

}  // namespace rehearse
