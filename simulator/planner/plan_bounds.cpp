#include "simulator/planner/plan_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "simulator/costs/compute.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/costs/reserved.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The cut depends on the ratios of the layers' times; cells whose ratios differ by less than this share a
// cut.
constexpr double kAlike = 0.005;

}  // namespace

struct PlanBounds::Cell {
  ModelTimes times;
  std::string refusal;
  mutable std::map<std::pair<int, StageCut>, const std::vector<int>*> cuts;  // by number of parts and rule
};

PlanBounds::PlanBounds(const Scenario& scenario, std::optional<double> reserve_bytes)
    : scenario_(scenario), reserve_bytes_(reserve_bytes), timer_(*scenario.cluster, scenario.engine) {
  constexpr double kMany = 1e9;
  Work update;
  update.precision = scenario.training.precision;
  update.parameters_updated = kMany;
  update.optimizer_bytes = kMany * update_bytes(scenario.training.optimizer, scenario.training.precision,
                                                scenario.training.gradient_precision);
  // A profile includes the time of its update.
  if (!is_profiled(scenario.model))
    update_s_per_parameter_ = work_time_s(update, scenario.cluster->node().device) / kMany;
}
PlanBounds::~PlanBounds() = default;

// Returns the strategy of a core on ranks in the order of the default placement, without its choices for
// gradients.
StrategyChoice PlanBounds::strategy_of(const CoreChoice& core) const {
  StrategyChoice strategy = scenario_.strategy;
  strategy.tensor = core.tensor;
  strategy.context = core.context;
  strategy.context_kind = core.context_kind;
  strategy.pipeline = core.pipeline;
  strategy.data = core.data;
  strategy.expert = core.expert;
  strategy.expert_tensor = core.expert_tensor;
  strategy.sequence_parallel = core.sequence_parallel && core.tensor > 1;
  strategy.placement = {"tensor", "context", "data", "pipeline"};
  strategy.schedule = core.schedule;
  strategy.virtual_stages = core.virtual_stages;
  strategy.stage_layers.clear();
  strategy.gradients = "all-reduce";
  strategy.gradient_strategy = nullptr;
  return strategy;
}

const PlanBounds::Cell& PlanBounds::cell(const CoreChoice& core, Recompute recompute) {
  const CellKey key = {core.tensor,
                       core.context,
                       static_cast<int>(core.context_kind),
                       core.expert,
                       core.expert_tensor,
                       core.sequence_parallel ? 1 : 0,
                       core.micro_batch,
                       static_cast<int>(recompute)};
  std::unique_ptr<Cell>& known = cells_[key];
  if (known) return *known;
  known = std::make_unique<Cell>();
  Scenario one = scenario_;
  one.training.micro_batch = core.micro_batch;
  one.training.recompute = recompute;
  one.training.recompute_layers = 0;
  CoreChoice whole = core;
  whole.pipeline = whole.virtual_stages = 1;
  whole.schedule = PipelineSchedule::one_f_one_b;
  whole.data = scenario_.cluster->devices() / (core.tensor * core.context);
  one.strategy = strategy_of(whole);
  one.microbatches = 1;
  try {
    known->times = timer_.times(one);
  } catch (const InputError& error) {
    known->refusal = error.what();
  } catch (const std::invalid_argument& error) {
    known->refusal = error.what();
  }
  return *known;
}

std::string PlanBounds::refusal(const CoreChoice& core) {
  return cell(core, core.recompute).refusal;
}

int PlanBounds::layers() const {
  return static_cast<int>(model_layers(scenario_.model, pass_shape(scenario_)).size());
}

const std::vector<int>& PlanBounds::cut(const Cell& cell, int parts, StageCut rule) {
  const std::vector<int>*& known = cell.cuts[{parts, rule}];
  if (!known) known = &new_cut(cell, parts, rule);
  return *known;
}

// Computes a cut. Cells whose layers' times have the same ratios share it.
const std::vector<int>& PlanBounds::new_cut(const Cell& cell, int parts, StageCut rule) {
  const std::vector<LayerTimes>& layers = cell.times.layers;
  const int count = static_cast<int>(layers.size());
  std::vector<int> ratios(1, static_cast<int>(rule));
  std::vector<double> times_s;
  for (const LayerTimes& layer : layers) times_s.push_back(layer.kernels_s);
  const double middle_s = times_s[times_s.size() / 2];
  for (const double time_s : times_s)
    ratios.push_back(time_s > 0 ? static_cast<int>(std::lround(std::log(time_s / middle_s) / kAlike))
                                : -9999);
  const auto [known, fresh] = cuts_.try_emplace({parts, std::move(ratios)});
  if (!fresh) return known->second;
  if (rule == StageCut::by_time) {
    if (parts <= count) known->second = balance_stages(times_s, parts);
  } else if (const int blocks = count - 2; blocks > 0 && blocks % parts == 0 && parts > 1) {
    known->second.assign(static_cast<std::size_t>(parts), blocks / parts);
    ++known->second.front();
    ++known->second.back();
  }
  return known->second;
}

const std::vector<int>& PlanBounds::stage_layers(const CoreChoice& core) {
  const Recompute timed = core.recompute_layers > 0 ? Recompute::none : core.recompute;
  return cut(cell(core, timed), core.pipeline * core.virtual_stages, core.cut);
}

int PlanBounds::most_recomputed(const CoreChoice& core) {
  const std::vector<LayerTimes>& layers = cell(core, core.recompute).times.layers;
  CoreChoice some = core;
  some.recompute_layers = 1;
  int most = 0, first = 0;
  for (const int count : stage_layers(some)) {
    int here = 0;
    for (int i = first; i < first + count; ++i) here += layers[static_cast<std::size_t>(i)].recompute_s > 0;
    most = std::max(most, here);
    first += count;
  }
  return most;
}

int PlanBounds::microbatches(const CoreChoice& core) const {
  const double samples = static_cast<double>(core.micro_batch) * core.data;
  return static_cast<int>(std::lround(scenario_.training.global_batch / samples));
}

PipelineShape PlanBounds::shape(const CoreChoice& core) const {
  return {core.schedule, core.pipeline, core.virtual_stages, microbatches(core),
          scenario_.strategy.overlap_passes};
}

double PlanBounds::sent_s(const CoreChoice& core, double bytes) {
  const int near = core.tensor * core.context, far = near * core.data;
  return std::min(timer_.collectives().message_s(0, near, bytes),
                  timer_.collectives().message_s(0, far, bytes));
}

// Returns the parts of a core; empty if the model cannot be cut or split in this way.
PlanBounds::Parts PlanBounds::parts(const CoreChoice& core) {
  const std::vector<int>& counts = stage_layers(core);
  const Cell& own = cell(core, core.recompute);
  const Cell& kept = core.recompute_layers > 0 ? cell(core, Recompute::none) : own;
  Parts result;
  if (counts.empty() || !own.refusal.empty() || !kept.refusal.empty()) return result;
  const double sent_share = scenario_.strategy.scatter_gather ? 1.0 / core.tensor : 1.0;
  std::size_t number = 0;
  double boundary_bytes = -1, boundary_s = 0;
  for (const int count : counts) {
    PartTimes part;
    HeldParameters held;
    int recomputed = 0;
    for (int i = 0; i < count; ++i, ++number) {
      const bool again = own.times.layers[number].recompute_s > 0;
      const bool keeps = core.recompute_layers > 0 && again && recomputed++ >= core.recompute_layers;
      const LayerTimes& layer = (keeps ? kept : own).times.layers[number];
      part.forward_s += layer.forward_s;
      part.backward_s += layer.backward_s + layer.recompute_s;
      part.backward_input_s += layer.backward_input_s + layer.recompute_s;
      part.backward_weight_s += layer.backward_weight_s;
      part.beside_s += layer.overlapped_s;
      part.kernels_s += layer.kernels_s;
      part.issue_s += layer.issue_forward_s + layer.issue_backward_s;
      part.saved_bytes += layer.saved_bytes;
      const double dense = layer.parameters - layer.expert_parameters;
      held.dense += dense;
      held.experts += layer.expert_parameters;
      held.largest_layer = std::max(held.largest_layer, dense);
      if (i + 1 == count && core.pipeline > 1) {
        const double bytes = layer.boundary_bytes * sent_share;
        if (bytes != boundary_bytes) boundary_s = sent_s(core, bytes);
        boundary_bytes = bytes;
        part.sent_s = boundary_s;
        part.sent_bytes = bytes;
      }
    }
    part.buckets = count;
    result.times.push_back(part);
    result.parameters.push_back(held);
  }
  if (core.pipeline > 1) {
    const int last = static_cast<int>(counts.size()) - 1;
    if (stage_of_part(order_of(core.schedule).placement, core.pipeline, last) > 0) {
      HeldParameters& held = result.parameters.back();
      held.dense += own.times.tied_parameters;
      held.largest_layer = std::max(held.largest_layer, own.times.tied_parameters);
    }
  }
  return result;
}

CoreBound PlanBounds::core_bound(const CoreChoice& core) {
  CoreBound bound;
  const auto [times, parameters] = parts(core);
  if (times.empty()) return {kNever, {}};
  const PipelineShape shape = this->shape(core);
  bound.seconds = quick_bound_s(shape, times);

  const Training& training = scenario_.training;
  const StateBytes state = state_bytes(training.optimizer, training.precision, training.gradient_precision);
  const PartPlacement placement = order_of(core.schedule).placement;
  const double copies = static_cast<double>(core.data) * core.context;
  const double expert_copies = std::max(1.0, copies * core.tensor / std::max(core.expert, 1));
  const double reserved = reserved_bytes(core, false), reserved_beside_servers = reserved_bytes(core, true);
  std::vector<int>& in_flight = in_flight_[{static_cast<int>(core.schedule), shape.stages, shape.chunks,
                                            shape.microbatches, shape.pairs ? 1 : 0}];
  if (in_flight.empty())
    for (int stage = 0; stage < shape.stages; ++stage) in_flight.push_back(most_in_flight(shape, stage));
  for (int stage = 0; stage < shape.stages; ++stage) {
    double dense = 0, experts = 0, saved = kNever, unit = kNever;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const auto part = static_cast<std::size_t>(part_of(placement, shape.stages, stage, chunk));
      dense += parameters[part].dense;
      experts += parameters[part].experts;
      saved = std::min(saved, times[part].saved_bytes);
      unit = std::min(unit, parameters[part].largest_layer);
    }
    const double activations = saved * in_flight[static_cast<std::size_t>(stage)];
    for (std::size_t s = 0; s < kHoldings; ++s) {
      const bool by_servers = s == kSharingNames.size();
      const auto sharing = by_servers ? Sharing::nothing : static_cast<Sharing>(s);
      const auto held = [&](double count, double all) {
        const double shards = shards_of(sharing, all), weights = sharing >= Sharing::weights ? shards : 1,
                     gradients = sharing >= Sharing::gradients ? shards : 1,
                     optimizer = sharing >= Sharing::optimizer ? shards : 1;
        // Servers hold the optimizer state.
        return count * (state.weight / weights + state.gradient / gradients +
                        (by_servers ? 0 : state.optimizer / optimizer));
      };
      double bytes = held(dense, copies) + held(experts, expert_copies) + activations +
                     (by_servers ? reserved_beside_servers : reserved);
      // While the most activations are held, the backward pass of a layer reads its gathered weights and
      // writes all of its gradients.
      if (copies > 1 && sharing >= Sharing::gradients)
        bytes += unit * (element_bytes(training.gradient_precision) +
                         (sharing >= Sharing::weights ? state.weight : 0));
      bound.bytes[s] = std::max(bound.bytes[s], bytes);
    }
  }
  return bound;
}

// Returns the reserve of a device. It includes the communicators that every rank has: for its share of the
// layers' work and for the gradients.
double PlanBounds::reserved_bytes(const CoreChoice& core, bool by_servers) {
  if (reserve_bytes_) return *reserve_bytes_;
  const Cluster& cluster = *scenario_.cluster;
  std::vector<int> tensor(static_cast<std::size_t>(core.tensor));
  std::iota(tensor.begin(), tensor.end(), 0);
  double bytes =
      reserved_on(cluster.node().device, scenario_.framework).total() + communicator_bytes(tensor, cluster);
  if (!by_servers)
    bytes += std::min(communicator_bytes(gradient_group(core, false, Sharing::nothing), cluster),
                      communicator_bytes(gradient_group(core, true, Sharing::nothing), cluster));
  return bytes;
}

const SlowedKernels& PlanBounds::slowed(const CoreChoice& core, const DeviceLoad& load) {
  const Cell& own = cell(core, core.recompute);
  const auto [known, fresh] = slowed_.try_emplace({&own, load});
  if (fresh)
    known->second =
        slowed_kernels(own.times, scenario_.cluster->node().device, scenario_.training.precision, load);
  return known->second;
}

// Returns the number of micro-batches to walk: enough rounds through the pipeline for it to become steady.
int PlanBounds::walked_microbatches(const CoreChoice& core) {
  return std::max(4 * core.pipeline, 16);
}

PlanBounds::WalkedCore PlanBounds::walk(const CoreChoice& core) {
  WalkedCore walked;
  walked.core = core;
  walked.parts = parts(core);
  const PipelineShape shape = this->shape(core);
  walked.quick_s = quick_bound_s(shape, walked.parts.times);
  walked.microbatches = shape.microbatches;
  walked.spans = walk_pipeline(shape, walked.parts.times, walked_microbatches(core));
  return walked;
}

}  // namespace rehearse
