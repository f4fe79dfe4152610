#include "simulator/report/pipeline_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/error.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/model_cut.hpp"

namespace rehearse {
namespace {

struct ChunkCost {
  double forward_s = 0, input_s = 0, weight_s = 0;  // of one micro-batch; input_s includes recomputation
  double saved_bytes = 0;       // of one micro-batch, until the last half of its backward pass
  double recomputed_bytes = 0;  // of one micro-batch, between the two halves if the backward pass is split
  double state_bytes = 0;       // weights, gradients, optimizer

  double seconds(Pass pass) const {
    if (pass == Pass::forward) return forward_s;
    if (pass == Pass::backward_input) return input_s;
    return pass == Pass::backward_weight ? weight_s : input_s + weight_s;
  }
};

struct Orders {
  PartPlacement placement = PartPlacement::loop;
  std::vector<std::vector<PassItem>> stages;

  std::size_t part(std::size_t stage, const PassItem& item) const {
    return static_cast<std::size_t>(
        part_of(placement, static_cast<int>(stages.size()), static_cast<int>(stage), item.chunk));
  }
};

Orders orders_of(PipelineSchedule schedule, int stages, int microbatches, int chunks) {
  Orders orders{order_of(schedule).placement, {}};
  for (int stage = 0; stage < stages; ++stage)
    orders.stages.push_back(pipeline_order(schedule, {stages, stage, microbatches, chunks}));
  return orders;
}

// Returns the longest time from the first to the last pass of a stage. A pass begins when its stage is free
// and its input is there: from the previous part of the model, or in the backward pass from the next part. If
// stages begin the next step without waiting for each other, this is the time between two steps.
double makespan_s(const std::vector<ChunkCost>& model, const Orders& orders, int microbatches) {
  constexpr double kNotYet = -1;
  const std::size_t parts = model.size(), stages = orders.stages.size(), all = parts * microbatches;
  std::vector<double> forward_end(all, kNotYet), backward_end(all, kNotYet);
  std::vector<double> begin(stages, kNotYet), now(stages, 0);
  std::vector<std::size_t> next(stages, 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t stage = 0; stage < stages; ++stage)
      for (; next[stage] < orders.stages[stage].size(); ++next[stage], progress = true) {
        const PassItem& item = orders.stages[stage][next[stage]];
        const std::size_t part = orders.part(stage, item);
        const auto at = [&](std::size_t of_part) { return of_part * microbatches + item.microbatch; };
        const bool upstream = item.pass == Pass::backward || item.pass == Pass::backward_input;
        double ready = 0;
        if (item.forward() && part > 0) ready = forward_end[at(part - 1)];
        if (upstream && part + 1 < parts) ready = backward_end[at(part + 1)];
        if (ready == kNotYet) break;
        const double start = std::max(now[stage], ready);
        if (begin[stage] == kNotYet) begin[stage] = start;
        now[stage] = start + model[part].seconds(item.pass);
        if (item.forward()) forward_end[at(part)] = now[stage];
        if (upstream) backward_end[at(part)] = now[stage];
      }
  }
  double longest = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) longest = std::max(longest, now[stage] - begin[stage]);
  return longest;
}

double most_bytes(const std::vector<ChunkCost>& model, const Orders& orders, std::size_t stage) {
  double kept = 0, most = 0, state = 0;
  int chunks = 0;
  for (const PassItem& item : orders.stages[stage]) {
    const ChunkCost& part = model[orders.part(stage, item)];
    if (item.forward()) kept += part.saved_bytes;
    if (item.pass == Pass::backward) kept -= part.saved_bytes;
    if (item.pass == Pass::backward_input) kept += part.recomputed_bytes;
    most = std::max(most, kept);
    if (item.pass == Pass::backward_weight) kept -= part.saved_bytes + part.recomputed_bytes;
    chunks = std::max(chunks, item.chunk + 1);
  }
  for (int c = 0; c < chunks; ++c) state += model[orders.part(stage, {Pass::forward, 0, c})].state_bytes;
  return most + state;
}

}  // namespace

PipelineEstimate estimate_pipeline(const Scenario& scenario, PipelineSchedule schedule, int chunks) {
  const Training& training = scenario.training;
  const int stages = scenario.strategy.pipeline;
  PipelineEstimate estimate;
  const OrderEntry& entry = order_of(schedule);
  Scenario changed = scenario;
  changed.strategy.schedule = schedule;
  changed.strategy.virtual_stages = chunks;
  changed.strategy.stage_layers.clear();
  ModelCut cut;
  estimate.possible = stages >= entry.fewest_stages && chunks >= entry.fewest_chunks &&
                      chunks <= entry.most_chunks &&
                      fits_groups(entry, {.stages = stages, .microbatches = scenario.microbatches});
  try {
    if (estimate.possible) cut = cut_model(changed);
  } catch (const InputError&) {
    estimate.possible = false;
  }
  if (!estimate.possible) return estimate;

  const Device& device = scenario.cluster->node().device;
  const StateBytes bytes = state_bytes(training.optimizer, training.precision, training.gradient_precision);
  std::vector<double> times_s, forward_s, weight_s;
  std::vector<LayerCost> layers;
  for (const Layer& of_model : cut.layers) {
    const LayerCost& layer = layers.emplace_back(merged(of_model));
    times_s.push_back(layer_time_s(layer, device, training.precision));
    const auto of = [&](const std::vector<Kernel>& kernels) {
      double seconds = 0;
      for (const Kernel& kernel : kernels) seconds += kernel_time_s(kernel, device, training.precision);
      return seconds;
    };
    forward_s.push_back(of(layer.forward));
    double left_s = 0;  // for the weight part
    for (const Segment& segment : of_model.segments)
      if (leaves_weights(segment)) left_s += of(segment.cost.backward_weight);
    weight_s.push_back(left_s);
  }
  std::vector<ChunkCost> model;
  for (const LayerRange& range : layer_ranges(cut.stage_layers)) {
    ChunkCost& part = model.emplace_back();
    for (int i = range.first; i <= range.last; ++i) {
      part.forward_s += forward_s[i];
      part.input_s += times_s[i] - forward_s[i] - weight_s[i];
      part.weight_s += weight_s[i];
      part.saved_bytes += layers[i].saved_bytes;
      part.recomputed_bytes += std::max(0.0, cut.keeping_all[i].saved_bytes - layers[i].saved_bytes);
      part.state_bytes += layers[i].parameters * bytes.total();
    }
  }
  const Orders orders = orders_of(schedule, stages, scenario.microbatches, chunks);
  estimate.compute_s = makespan_s(model, orders, scenario.microbatches);
  for (std::size_t stage = 0; stage < orders.stages.size(); ++stage)
    estimate.fullest_bytes = std::max(estimate.fullest_bytes, most_bytes(model, orders, stage));
  return estimate;
}

Slots slots_of(PipelineSchedule schedule, int stages, int microbatches, int chunks) {
  const OrderEntry& entry = order_of(schedule);
  const double passes = 1.0 * microbatches * chunks;
  if (!entry.splits_backward) return {stages - 1.0, passes + stages - 1, false};
  const std::vector<ChunkCost> parts(static_cast<std::size_t>(stages) * static_cast<std::size_t>(chunks),
                                     {1, 1, 1, 0, 0, 0});
  const double all = makespan_s(parts, orders_of(schedule, stages, microbatches, chunks), microbatches);
  return {all - 3 * passes, all, true};
}

std::string idle_slots(const Slots& slots) {
  if (!slots.are_passes) return fmt::format("{} of {} slots idle", slots.idle, slots.all);
  const std::string idle = slots.idle > 0 ? fmt::format("{}", slots.idle) : "none";
  return fmt::format("{} of {} equal passes idle", idle, slots.all);
}

}  // namespace rehearse
