// Computes lower bounds of the time that gradient synchronization, sharding and the optimizer add to a step.
#include <algorithm>
#include <numeric>

#include "simulator/planner/plan_bounds.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/programs/ops.hpp"

namespace rehearse {
namespace {

constexpr double kMiB = 1048576;

}  // namespace

// What one stage sends for a micro-batch or a step, and what it computes meanwhile; in seconds unless stated
// otherwise.
struct PlanBounds::StageSync {
  double dense = 0;                                // number of parameters outside experts
  double sum_s = 0, scatter_s = 0, gather_s = 0;   // for all of its gradients or weights
  double first_gather_s = 0, first_forward_s = 0;  // of its first model chunk
  double sent_bytes = 0;                           // to other stages, in both directions, per micro-batch
  double kernels_s = 0;                            // per micro-batch
};

// Returns the ranks that sum gradients with the first rank; with hybrid sharding, those of them on its node.
const std::vector<Endpoint>& PlanBounds::gradient_group(const CoreChoice& core, bool pipeline_inside,
                                                        Sharing sharing) {
  const bool in_node = sharing == Sharing::weights_in_node;
  const auto [known, fresh] = groups_.try_emplace(
      {core.tensor, core.context, core.pipeline, core.data, pipeline_inside ? 1 : 0, in_node ? 1 : 0});
  if (!fresh) return known->second;
  StrategyChoice strategy = strategy_of(core);
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

// Returns the seconds in which a server's NICs receive its share of the gradients of all workers on other
// nodes.
double PlanBounds::pushed_s(const CoreChoice& core, int servers, double parameters) const {
  const Node& node = scenario_.cluster->node();
  const double remote = core.data - node.devices,
               share_bytes = parameters / servers * element_bytes(scenario_.training.gradient_precision);
  if (remote <= 0 || node.nics * node.nic_bandwidth <= 0) return 0;
  return remote * share_bytes / (node.nics * node.nic_bandwidth);
}

// Returns the number of shards into which the state of weights is divided that `copies` ranks would otherwise
// hold in full.
double PlanBounds::shards_of(Sharing sharing, double copies) const {
  if (sharing == Sharing::nothing) return 1;
  if (sharing != Sharing::weights_in_node) return copies;
  return std::min(copies, static_cast<double>(scenario_.cluster->node().devices));
}

// Returns a lower bound, in seconds, of a collective over `count` parameters among the ranks that sum
// gradients. The parameters are sent in pieces of at most `piece`, whose exact sizes are not known here. Time
// grows more slowly than bytes, so the bound assumes that all pieces have the maximum size.
double PlanBounds::pieces_s(const CoreChoice& core, const GradientChoice& gradients, CollectiveKind kind,
                            double count, double piece, double element) {
  const std::vector<Endpoint>& group = gradient_group(core, gradients.pipeline_inside, gradients.sharing);
  if (count <= 0 || group.size() < 2 || gradients.servers > 0) return 0;
  if (scenario_.strategy.compression.kind != Compression::none) return 0;
  piece = std::min(count, piece);
  return count / piece *
         timer_.collectives().alone_s(kind, gradients.all_reduce, scenario_.strategy.channels, group,
                                      piece * element);
}

PlanBounds::StageSync PlanBounds::stage_sync(const WalkedCore& walked, const GradientChoice& gradients,
                                             int stage) {
  const CoreChoice& core = walked.core;
  const auto& [parts, parameters] = walked.parts;
  const OrderEntry& entry = order_of(core.schedule);
  const Training& training = scenario_.training;
  const double of_gradient = element_bytes(training.gradient_precision),
               of_weight = element_bytes(training.precision) * gathered_share(scenario_);
  const auto goes_to_another = [&](std::size_t other) {
    return other < walked.parts.times.size() &&
           stage_of_part(entry.placement, core.pipeline, static_cast<int>(other)) != stage;
  };
  StageSync sync;
  for (int chunk = 0; chunk < core.virtual_stages; ++chunk) {
    const auto part = static_cast<std::size_t>(part_of(entry.placement, core.pipeline, stage, chunk));
    const HeldParameters& its = parameters[part];
    const auto seconds = [&](CollectiveKind kind, double piece, double element) {
      return pieces_s(core, gradients, kind, its.dense, piece, element);
    };
    const double piece = its.largest_layer + bucket_parameters(gradients);
    if (gradients.sharing == Sharing::nothing) {
      sync.sum_s += seconds(CollectiveKind::all_reduce, piece, of_gradient);
    } else {
      sync.scatter_s += seconds(CollectiveKind::reduce_scatter, piece, of_gradient);
      sync.gather_s += seconds(CollectiveKind::all_gather,
                               gradients.sharing >= Sharing::weights ? its.largest_layer : piece, of_weight);
    }
    if (chunk == 0) {
      sync.first_gather_s = sync.gather_s;
      sync.first_forward_s = parts[part].forward_s;
    }
    sync.dense += its.dense;
    sync.kernels_s += parts[part].kernels_s;
    if (goes_to_another(part + 1)) sync.sent_bytes += parts[part].sent_bytes;
    if (goes_to_another(part - 1)) sync.sent_bytes += parts[part - 1].sent_bytes;
  }
  return sync;
}

double PlanBounds::bucket_parameters(const GradientChoice& gradients) const {
  const double bytes =
      gradients.sharing == Sharing::nothing ? gradients.bucket_mb * kMiB : scenario_.strategy.bucket_bytes;
  return bytes / element_bytes(scenario_.training.gradient_precision);
}

// Returns the timeline of the passes if a reduce-scatter follows each backward pass.
std::vector<StageSpan> PlanBounds::walk_with_sums(const WalkedCore& walked, const GradientChoice& gradients) {
  const CoreChoice& core = walked.core;
  auto [parts, parameters] = walked.parts;
  const double of_gradient = element_bytes(scenario_.training.gradient_precision);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double scatter_s =
        pieces_s(core, gradients, CollectiveKind::reduce_scatter, parameters[i].dense,
                 parameters[i].largest_layer + bucket_parameters(gradients), of_gradient);
    if (scenario_.strategy.overlap) {
      parts[i].scatter_s = scatter_s;
    } else {
      parts[i].backward_s += scatter_s;
      parts[i].backward_weight_s += scatter_s;
    }
  }
  return walk_pipeline(shape(core), parts, walked_microbatches(core));
}

// Returns when the stage has combined its gradients, and gathered its weights if they are sharded, in a step
// whose passes end at span.end_s. Excludes the time to gather weights before the first pass.
double PlanBounds::synced_s(const CoreChoice& core, const GradientChoice& gradients, const StageSpan& span,
                            const StageSync& sync) const {
  const bool overlap = scenario_.strategy.overlap;
  if (gradients.servers > 0)
    return std::max(span.end_s, span.last_gradients_s + pushed_s(core, gradients.servers, sync.dense));
  const double ready_s = overlap ? span.last_gradients_s : span.end_s;
  double end_s = span.end_s;
  const int passes = microbatches(core);
  switch (gradients.sharing) {
    case Sharing::nothing:
      return std::max(end_s, ready_s + sync.sum_s);
    case Sharing::optimizer:
      end_s = std::max(end_s, ready_s + sync.scatter_s);
      break;
    case Sharing::gradients:
      end_s = std::max(end_s, (overlap ? span.first_backward_s : 0) + passes * sync.scatter_s);
      break;
    case Sharing::weights:
    case Sharing::weights_in_node:
      // Weights are gathered for each forward and each backward pass.
      end_s = std::max(end_s, (overlap ? span.first_backward_s : 0) + passes * sync.scatter_s);
      return std::max(end_s, span.begin_s + 2 * passes * sync.gather_s);
  }
  return overlap ? end_s : end_s + sync.gather_s;
}

double PlanBounds::plan_bound_s(const WalkedCore& walked, const GradientChoice& gradients) {
  const CoreChoice& core = walked.core;
  const bool alone = core.data * core.context == 1, by_servers = gradients.servers > 0;
  const bool each_pass = gradients.sharing >= Sharing::gradients && !alone;
  const Node& node = scenario_.cluster->node();
  const std::vector<StageSpan> spans = each_pass ? walk_with_sums(walked, gradients) : walked.spans;
  // If each stage fills entire nodes, everything that a stage sends to its neighbours goes over the nodes'
  // NICs.
  const int together = core.tensor * core.context * (gradients.pipeline_inside ? 1 : core.data);
  const double cards = node.nics * node.nic_bandwidth;
  const bool shares_cards = core.pipeline > 1 && together % node.devices == 0 && cards > 0;
  // The collectives of all micro-batches but the last one run beside passes and slow them down, or the device
  // waits for them.
  const bool slows = each_pass && scenario_.strategy.overlap &&
                     scenario_.engine.interference.applies(scenario_.engine.protocol, node.device);
  // A step that begins before the previous one has ended everywhere takes the time from a stage's beginning
  // to its end.
  const bool crosses =
      order_of(core.schedule).staggered || gradients.sharing != Sharing::nothing || by_servers;
  const double copies = static_cast<double>(core.data) * core.context;
  std::vector<double> slowed_s;
  double bound_s = walked.quick_s;
  for (int stage = 0; stage < core.pipeline; ++stage) {
    const StageSync sync = stage_sync(walked, gradients, stage);
    const StageSpan& span = spans[static_cast<std::size_t>(stage)];
    if (shares_cards)
      bound_s = std::max(bound_s, walked.microbatches * node.devices * sync.sent_bytes / cards);
    if (slows) {
      const std::vector<Endpoint>& group = gradient_group(core, gradients.pipeline_inside, gradients.sharing);
      const double bytes = sync.dense * element_bytes(scenario_.training.gradient_precision);
      const DeviceLoad load = timer_.collectives().ring_load(
          CollectiveKind::reduce_scatter, scenario_.strategy.channels, group, bytes, sync.scatter_s);
      const double beside_s =
          sync.scatter_s + (gradients.sharing >= Sharing::weights ? 2 * sync.gather_s : 0);
      slowed_s.push_back((walked.microbatches - 1) * slowed(core, load).more_s(sync.kernels_s, beside_s));
    }
    double step_s = synced_s(core, gradients, span, sync);
    if (!by_servers) step_s += sync.dense / shards_of(gradients.sharing, copies) * update_s_per_parameter_;
    if (crosses) step_s -= span.begin_s;
    // The very first forward pass waits for the weights that were gathered at the end of the previous step.
    const bool gathers_ahead =
        (gradients.sharing == Sharing::optimizer || gradients.sharing == Sharing::gradients) &&
        scenario_.strategy.overlap;
    if (stage == 0 && gathers_ahead) step_s += std::max(0.0, sync.first_gather_s - sync.first_forward_s);
    bound_s = std::max(bound_s, step_s);
  }
  return slows ? std::max(bound_s, quick_bound_s(shape(core), walked.parts.times, slowed_s)) : bound_s;
}

}  // namespace rehearse
