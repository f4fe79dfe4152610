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
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr double kMiB = 1048576;
constexpr double kNever = std::numeric_limits<double>::infinity();

// The cut depends on the ratios of the layers' times; those that differ less share one.
constexpr double kAlike = 0.005;

StrategyChoice strategy_of(const Scenario& scenario, const CoreChoice& core) {
  StrategyChoice strategy = scenario.strategy;
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

}  // namespace

struct PlanBounds::Cell {
  ModelTimes times;
  std::string refusal;
  mutable std::map<std::pair<int, StageCut>, const std::vector<int>*> cuts;  // by parts
};

PlanBounds::PlanBounds(const Scenario& scenario, std::optional<double> reserve_bytes)
    : scenario_(scenario), reserve_bytes_(reserve_bytes), timer_(*scenario.cluster, scenario.engine) {
  constexpr double kMany = 1e9;
  Work update;
  update.precision = scenario.training.precision;
  update.parameters_updated = kMany;
  update.optimizer_bytes = kMany * update_bytes(scenario.training.optimizer, scenario.training.precision,
                                                scenario.training.gradient_precision);
  update_s_per_parameter_ = work_time_s(update, scenario.cluster->node().device) / kMany;
}
PlanBounds::~PlanBounds() = default;

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
  one.strategy = strategy_of(scenario_, whole);
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

// Cells whose layers' times have the same ratios share a cut.
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
  const double least_s =
      std::min(timer_.collectives().message_s(0, near, bytes), timer_.collectives().message_s(0, far, bytes));
  return least_s;
}

// `parameters`, if asked for: dense ones and experts' of each part.
std::vector<PartTimes> PlanBounds::parts(const CoreChoice& core, std::vector<HeldParameters>* parameters) {
  const std::vector<int>& counts = stage_layers(core);
  const Cell& own = cell(core, core.recompute);
  const Cell& kept = core.recompute_layers > 0 ? cell(core, Recompute::none) : own;
  std::vector<PartTimes> result;
  if (counts.empty() || !own.refusal.empty() || !kept.refusal.empty()) return result;
  const Training& training = scenario_.training;
  const double sent_share = (scenario_.strategy.scatter_gather ? 1.0 / core.tensor : 1.0) *
                            element_bytes(training.activation_precision) / element_bytes(training.precision);
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
    result.push_back(part);
    if (parameters) parameters->push_back(held);
  }
  if (parameters && core.pipeline > 1) {
    const int last = static_cast<int>(counts.size()) - 1;
    if (stage_of_part(order_of(core.schedule).placement, core.pipeline, last) > 0)
      parameters->back().dense += own.times.tied_parameters;
  }
  return result;
}

CoreBound PlanBounds::core_bound(const CoreChoice& core) {
  CoreBound bound;
  std::vector<HeldParameters> parameters;
  const std::vector<PartTimes> parts = this->parts(core, &parameters);
  if (parts.empty()) return {kNever, {}};
  const PipelineShape shape = this->shape(core);
  bound.seconds = quick_bound_s(shape, parts);

  const Training& training = scenario_.training;
  const StateBytes state = state_bytes(training.optimizer, training.precision, training.gradient_precision);
  const PartPlacement placement = order_of(core.schedule).placement;
  const double copies = static_cast<double>(core.data) * core.context;
  const double expert_copies = std::max(1.0, copies * core.tensor / std::max(core.expert, 1));
  const double reserved = reserved_bytes(core, false), reserved_beside_servers = reserved_bytes(core, true);
  std::vector<int>& in_flight = in_flight_[{static_cast<int>(core.schedule), shape.stages, shape.chunks,
                                            shape.microbatches, shape.pairs ? 1 : 0, 0}];
  if (in_flight.empty())
    for (int stage = 0; stage < shape.stages; ++stage) in_flight.push_back(most_in_flight(shape, stage));
  for (int stage = 0; stage < shape.stages; ++stage) {
    double dense = 0, experts = 0, saved = kNever, unit = kNever;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const auto part = static_cast<std::size_t>(part_of(placement, shape.stages, stage, chunk));
      dense += parameters[part].dense;
      experts += parameters[part].experts;
      saved = std::min(saved, parts[part].saved_bytes);
      unit = std::min(unit, parameters[part].largest_layer);
    }
    const double activations = saved * in_flight[static_cast<std::size_t>(stage)];
    for (std::size_t s = 0; s < kHoldings; ++s) {
      const bool by_servers = s == kSharingNames.size();
      const auto sharing = by_servers ? Sharing::nothing : static_cast<Sharing>(s);
      const double devices = scenario_.cluster->node().devices;
      const auto held = [&](double count, double all) {
        const double shards = sharing == Sharing::weights_in_node ? std::min(all, devices) : all,
                     weights = sharing >= Sharing::weights ? shards : 1,
                     gradients = sharing >= Sharing::gradients ? shards : 1,
                     optimizer = sharing >= Sharing::optimizer ? shards : 1;
        // Servers keep the optimizer's state.
        return count * (state.weight / weights + state.gradient / gradients +
                        (by_servers ? 0 : state.optimizer / optimizer));
      };
      double bytes = held(dense, copies) + held(experts, expert_copies) + activations +
                     (by_servers ? reserved_beside_servers : reserved);
      // When the most activations are kept, the backward pass of a layer reads its weights, gathered, and
      // writes all of its gradients.
      if (copies > 1 && sharing >= Sharing::gradients)
        bytes += unit * (element_bytes(training.gradient_precision) +
                         (sharing >= Sharing::weights ? state.weight : 0));
      bound.bytes[s] = std::max(bound.bytes[s], bytes);
    }
  }
  return bound;
}

// Communicators: those that every rank has, for a share of the layers' work and for the gradients.
double PlanBounds::reserved_bytes(const CoreChoice& core, bool by_servers) {
  if (reserve_bytes_) return *reserve_bytes_;
  const Cluster& cluster = *scenario_.cluster;
  std::vector<int> tensor(static_cast<std::size_t>(core.tensor));
  std::iota(tensor.begin(), tensor.end(), 0);
  double bytes = reserved_on(cluster.node().device).total() + communicator_bytes(tensor, cluster);
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

namespace {

// Micro-batches that are walked: rounds through the pipeline until it is steady.
int walked_microbatches(const CoreChoice& core) {
  return std::max(4 * core.pipeline, 16);
}

}  // namespace

PlanBounds::WalkedCore PlanBounds::walk(const CoreChoice& core) {
  WalkedCore walked;
  walked.core = core;
  const std::vector<PartTimes> parts = this->parts(core, nullptr);
  const PipelineShape shape = this->shape(core);
  walked.quick_s = quick_bound_s(shape, parts);
  walked.microbatches = shape.microbatches;
  walked.spans = walk_pipeline(shape, parts, walked_microbatches(core));
  return walked;
}

double PlanBounds::update_s(const CoreChoice& core, Sharing sharing) {
  std::vector<HeldParameters> parameters;
  parts(core, &parameters);
  double least = kNever;
  const PartPlacement placement = order_of(core.schedule).placement;
  std::vector<double> of_stage(static_cast<std::size_t>(core.pipeline), 0);
  for (std::size_t part = 0; part < parameters.size(); ++part)
    of_stage[static_cast<std::size_t>(stage_of_part(placement, core.pipeline, static_cast<int>(part)))] +=
        parameters[part].dense;
  for (const double count : of_stage) least = std::min(least, count);
  const double copies = static_cast<double>(core.data) * core.context;
  const double shards = sharing == Sharing::nothing ? 1
                        : sharing == Sharing::weights_in_node
                            ? std::min(copies, static_cast<double>(scenario_.cluster->node().devices))
                            : copies;
  return least / shards * update_s_per_parameter_;
}

// Ranks over which the gradients of the first rank's weights are summed; of hybrid shards, those of a node.
const std::vector<Endpoint>& PlanBounds::gradient_group(const CoreChoice& core, bool pipeline_inside,
                                                        Sharing sharing) {
  const bool in_node = sharing == Sharing::weights_in_node;
  const auto [known, fresh] = groups_.try_emplace(
      {core.tensor, core.context, core.pipeline, core.data, pipeline_inside ? 1 : 0, in_node ? 1 : 0});
  if (!fresh) return known->second;
  StrategyChoice strategy = strategy_of(scenario_, core);
  if (pipeline_inside) strategy.placement = {"tensor", "context", "pipeline", "data"};
  Role workers;
  workers.meshes.emplace_back(worker_axes(strategy));
  const Mesh& mesh = workers.meshes.front();
  Group group;
  for (const char* name : {"context", "data"})
    if (const int axis = mesh.axis(name); axis >= 0) group.axes.push_back({axis, 0, 1, {}});
  std::sort(group.axes.begin(), group.axes.end(),
            [](const GroupAxis& a, const GroupAxis& b) { return a.axis < b.axis; });
  known->second = group_members(workers, group, 0);
  if (in_node) {
    const Cluster& cluster = *scenario_.cluster;
    std::vector<Endpoint>& members = known->second;
    std::size_t here = 0;
    while (here < members.size() && cluster.node_of(members[here]) == cluster.node_of(members.front()))
      ++here;
    members.resize(std::gcd(here, members.size()));
  }
  return known->second;
}

// The card of a server takes in its share of the gradients of all workers on other nodes.
double PlanBounds::pushed_s(const CoreChoice& core, int servers, double parameters) const {
  const Node& node = scenario_.cluster->node();
  const double remote = core.data - node.devices,
               share_bytes = parameters / servers * element_bytes(scenario_.training.gradient_precision);
  if (remote <= 0 || node.nics * node.nic_bandwidth <= 0) return 0;
  return remote * share_bytes / (node.nics * node.nic_bandwidth);
}

double PlanBounds::plan_bound_s(const WalkedCore& walked, const GradientChoice& gradients) {
  const CoreChoice& core = walked.core;
  const OrderEntry& entry = order_of(core.schedule);
  const StrategyChoice& strategy = scenario_.strategy;
  const Training& training = scenario_.training;
  std::vector<HeldParameters> parameters;
  std::vector<PartTimes> parts = this->parts(core, &parameters);
  const double copies = static_cast<double>(core.data) * core.context;
  const bool alone = copies == 1, by_servers = gradients.servers > 0;
  const double shards = gradients.sharing == Sharing::nothing ? 1
                        : gradients.sharing == Sharing::weights_in_node
                            ? std::min(copies, static_cast<double>(scenario_.cluster->node().devices))
                            : copies;
  const std::vector<Endpoint>& group = gradient_group(core, gradients.pipeline_inside, gradients.sharing);
  CollectiveTimes& times = timer_.collectives();
  const auto collective_s = [&](CollectiveKind kind, double bytes) {
    return alone || by_servers ? 0.0
                               : times.alone_s(kind, gradients.all_reduce, strategy.channels, group, bytes);
  };
  const double of_gradient = element_bytes(training.gradient_precision),
               of_weight = element_bytes(training.precision) * gathered_share(scenario_);
  // Collectives over pieces of at most `piece` of `parameters`: as a collective's time grows less than its
  // bytes, so many of the largest size take no longer than those of any sizes.
  const auto pieces_s = [&](CollectiveKind kind, double count, double piece, double element) {
    if (count <= 0) return 0.0;
    piece = std::min(count, piece);
    return count / piece * collective_s(kind, piece * element);
  };
  const double bucket =
      (gradients.sharing == Sharing::nothing ? gradients.bucket_mb * kMiB : strategy.bucket_bytes) /
      of_gradient;
  // Where neighbours of a stage fill whole nodes, all of them send over their nodes' cards.
  const Node& node = scenario_.cluster->node();
  const int together = core.tensor * core.context * (gradients.pipeline_inside ? 1 : core.data);
  const bool shares_cards =
      core.pipeline > 1 && together % node.devices == 0 && node.nics * node.nic_bandwidth > 0;
  const bool each_pass =
      gradients.sharing >= Sharing::gradients && strategy.overlap && !alone &&
      scenario_.engine.interference.applies(scenario_.engine.protocol, scenario_.cluster->node().device);
  std::vector<double> slowed_s;
  std::vector<StageSpan> spans = walked.spans;
  if (gradients.sharing >= Sharing::gradients && !alone) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double scatter_s = pieces_s(CollectiveKind::reduce_scatter, parameters[i].dense,
                                        parameters[i].largest_layer + bucket, of_gradient);
      if (strategy.overlap) {
        parts[i].scatter_s = scatter_s;
        continue;
      }
      parts[i].backward_s += scatter_s;
      parts[i].backward_weight_s += scatter_s;
    }
    spans = walk_pipeline(shape(core), parts, walked_microbatches(core));
  }
  const bool crosses = entry.staggered || gradients.sharing != Sharing::nothing || by_servers;
  double bound_s = walked.quick_s;
  for (int stage = 0; stage < core.pipeline; ++stage) {
    double dense = 0, sent_bytes = 0;
    double first_gather_s = 0, first_forward_s = 0, scatter_s = 0, gather_s = 0, sum_s = 0;
    for (int chunk = 0; chunk < core.virtual_stages; ++chunk) {
      const auto part = static_cast<std::size_t>(part_of(entry.placement, core.pipeline, stage, chunk));
      dense += parameters[part].dense;
      const auto goes_to_another = [&](std::size_t other) {
        return other < parts.size() &&
               stage_of_part(entry.placement, core.pipeline, static_cast<int>(other)) != stage;
      };
      if (goes_to_another(part + 1)) sent_bytes += parts[part].sent_bytes;
      if (goes_to_another(part - 1)) sent_bytes += parts[part - 1].sent_bytes;
      const HeldParameters& its = parameters[part];
      const double piece = its.largest_layer + bucket;
      if (gradients.sharing == Sharing::nothing) {
        sum_s += pieces_s(CollectiveKind::all_reduce, its.dense, piece, of_gradient);
      } else {
        scatter_s += pieces_s(CollectiveKind::reduce_scatter, its.dense, piece, of_gradient);
        gather_s += pieces_s(CollectiveKind::all_gather, its.dense,
                             gradients.sharing >= Sharing::weights ? its.largest_layer : piece, of_weight);
      }
      if (chunk == 0) {
        first_gather_s = gather_s;
        first_forward_s = parts[part].forward_s;
      }
    }
    if (each_pass) {
      // Collectives of all micro-batches but the last one run beside its passes, or the device waits for
      // them.
      double beside_s = scatter_s, own_s = 0;
      if (gradients.sharing >= Sharing::weights) beside_s += 2 * gather_s;
      for (int chunk = 0; chunk < core.virtual_stages; ++chunk)
        own_s +=
            parts[static_cast<std::size_t>(part_of(entry.placement, core.pipeline, stage, chunk))].kernels_s;
      const DeviceLoad load = times.ring_load(CollectiveKind::reduce_scatter, strategy.channels, group,
                                              dense * of_gradient, scatter_s);
      slowed_s.push_back((walked.microbatches - 1) * slowed(core, load).more_s(own_s, beside_s));
    }
    const StageSpan& span = spans[static_cast<std::size_t>(stage)];
    double end_s = span.end_s;
    if (shares_cards)
      bound_s = std::max(bound_s,
                         walked.microbatches * node.devices * sent_bytes / (node.nics * node.nic_bandwidth));
    if (by_servers) end_s = std::max(end_s, span.last_gradients_s + pushed_s(core, gradients.servers, dense));
    double late_s = 0;  // by which the step's first forward pass ends later
    if (gradients.sharing == Sharing::nothing && !by_servers) {
      end_s = std::max(end_s, (strategy.overlap ? span.last_gradients_s : end_s) + sum_s);
    } else if (!by_servers) {
      if (gradients.sharing == Sharing::optimizer)
        end_s = std::max(end_s, (strategy.overlap ? span.last_gradients_s : end_s) + scatter_s);
      else
        end_s =
            std::max(end_s, (strategy.overlap ? span.first_backward_s : 0) + walked.microbatches * scatter_s);
      if (gradients.sharing >= Sharing::weights) {
        end_s = std::max(end_s, span.begin_s + 2 * walked.microbatches * gather_s);
      } else if (strategy.overlap) {
        late_s = std::max(0.0, first_gather_s - first_forward_s);
      } else {
        end_s += gather_s;
      }
    }
    if (!by_servers) end_s += dense / shards * update_s_per_parameter_;
    // A step that begins before the one before has ended everywhere lasts from a stage's beginning to its
    // end.
    if (crosses) end_s -= span.begin_s;
    bound_s = std::max(bound_s, stage == 0 || core.pipeline == 1 ? end_s + late_s : end_s);
  }
  if (each_pass) bound_s = std::max(bound_s, quick_bound_s(shape(core), parts, slowed_s));
  return bound_s;
}

}  // namespace rehearse
