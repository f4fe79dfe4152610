#include "simulator/report/pipeline_estimate.hpp"

#include <algorithm>

#include "simulator/costs/compute.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

struct Part {
  double forward_s = 0, backward_s = 0;  // of one micro-batch
  double saved_bytes = 0;                // of one micro-batch, until its backward pass
  double state_bytes = 0;                // weights, gradients, optimizer
};

// Until the last stage has run its order, each pass as soon as its stage and the part before it (backward:
// the part behind it) are done.
double makespan_s(const std::vector<Part>& model, const std::vector<std::vector<PassItem>>& orders,
                  int microbatches) {
  constexpr double kNotYet = -1;
  const std::size_t parts = model.size(), stages = orders.size(), all = parts * microbatches;
  std::vector<double> forward_end(all, kNotYet), backward_end(all, kNotYet), now(stages, 0);
  std::vector<std::size_t> next(stages, 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t stage = 0; stage < stages; ++stage)
      for (; next[stage] < orders[stage].size(); ++next[stage], progress = true) {
        const PassItem& item = orders[stage][next[stage]];
        const std::size_t part = item.chunk * stages + stage;
        const auto at = [&](std::size_t of_part) { return of_part * microbatches + item.microbatch; };
        double ready = 0;
        if (item.forward && part > 0) ready = forward_end[at(part - 1)];
        if (!item.forward && part + 1 < parts) ready = backward_end[at(part + 1)];
        if (ready == kNotYet) break;
        now[stage] =
            std::max(now[stage], ready) + (item.forward ? model[part].forward_s : model[part].backward_s);
        (item.forward ? forward_end : backward_end)[at(part)] = now[stage];
      }
  }
  return *std::max_element(now.begin(), now.end());
}

double most_bytes(const std::vector<Part>& model, const std::vector<PassItem>& order, int stage, int stages) {
  double kept = 0, most = 0;
  for (const PassItem& item : order) {
    const double saved = model[item.chunk * stages + stage].saved_bytes;
    kept += item.forward ? saved : -saved;
    most = std::max(most, kept);
  }
  for (std::size_t part = stage; part < model.size(); part += stages) most += model[part].state_bytes;
  return most;
}

}  // namespace

PipelineEstimate estimate_pipeline(const Scenario& scenario, PipelineSchedule schedule, int chunks) {
  const Training& training = scenario.training;
  const int stages = scenario.strategy.pipeline, parts = stages * chunks;
  const std::vector<LayerCost> layers = layer_costs(scenario.model, pass_shape(scenario));
  PipelineEstimate estimate;
  estimate.possible = parts <= static_cast<int>(layers.size()) &&
                      (schedule != PipelineSchedule::interleaved ||
                       (chunks > 1 && stages > 1 && scenario.microbatches % stages == 0));
  if (!estimate.possible) return estimate;

  const Device& device = scenario.cluster->node().device;
  const StateBytes bytes = state_bytes(training.optimizer, training.precision, training.gradient_precision);
  std::vector<double> times_s, forward_s;
  for (const LayerCost& layer : layers) {
    times_s.push_back(layer_time_s(layer, device, training.precision));
    forward_s.push_back(0);
    for (const Kernel& kernel : layer.forward)
      forward_s.back() += kernel_time_s(kernel, device, training.precision);
  }
  std::vector<Part> model;
  for (const LayerRange& range : layer_ranges(balance_stages(times_s, parts))) {
    Part& part = model.emplace_back();
    for (int i = range.first; i <= range.last; ++i) {
      part.forward_s += forward_s[i];
      part.backward_s += times_s[i] - forward_s[i];
      part.saved_bytes += layers[i].saved_bytes;
      part.state_bytes += layers[i].parameters * bytes.total();
    }
  }
  std::vector<std::vector<PassItem>> orders;
  for (int stage = 0; stage < stages; ++stage)
    orders.push_back(pipeline_order(schedule, stages, stage, scenario.microbatches, chunks));
  estimate.compute_s = makespan_s(model, orders, scenario.microbatches);
  for (int stage = 0; stage < stages; ++stage)
    estimate.fullest_bytes =
        std::max(estimate.fullest_bytes, most_bytes(model, orders[stage], stage, stages));
  return estimate;
}

}  // namespace rehearse
