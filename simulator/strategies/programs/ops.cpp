#include "simulator/strategies/programs/ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "models/kernels.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/programs/expert_exchange.hpp"

namespace rehearse {
namespace {

// Returns the group's members for the program's first rank; the groups of its other ranks have equivalent
// locations.
std::vector<Endpoint> endpoints_of(const StepPlan& plan, const Program& program, const Group& group) {
  const Role& workers = plan.schedule.roles.front();
  const int first = first_rank_at(workers, program.where);
  std::vector<Endpoint> endpoints;
  for (const int rank : group_members(workers, group, first)) endpoints.push_back(plan.endpoints[rank]);
  return endpoints;
}

}  // namespace

namespace {

// Returns the number of ranks that duplicate the work of a segment.
double duplicates(const Walk& walk, SegmentKind kind) {
  double ranks = 1;
  for (const Factor& factor : walk.factors)
    if (factor.table.of(kind).kind != Split::Kind::by) ranks *= factor.size;
  return ranks;
}

}  // namespace

Work pass_work(const StepPlan& plan, Pass pass, int first_segment, int end_segment) {
  return pass_work(plan, plan.walk.segments, pass, first_segment, end_segment);
}

Work pass_work(const StepPlan& plan, const std::vector<const Segment*>& segments, Pass pass,
               int first_segment, int end_segment) {
  const Walk& walk = plan.walk;
  Work work;
  work.precision = plan.scenario.training.precision;
  work.name = fmt::format("{} {}", kPassNames[static_cast<std::size_t>(pass)],
                          segments_text(plan, first_segment, end_segment));
  double& flops = pass == Pass::recompute ? work.extra_flops : work.model_flops;
  // Rows that pad experts up to their capacity do not count as the model's.
  const double padding = std::max(1.0, plan.scenario.strategy.capacity_factor);
  const auto add = [&](int segment, const std::vector<Kernel>& kernels) {
    append(work.kernels, kernels);
    const SegmentKind kind = segments[segment]->kind;
    const bool padded = kind == SegmentKind::expert_up || kind == SegmentKind::expert_down;
    flops += product_flops(kernels) / duplicates(walk, kind) / (padded ? padding : 1);
  };
  // The backward pass visits the layers from the last one to the first.
  const bool input = pass == Pass::backward || pass == Pass::backward_input;
  const bool weight = pass == Pass::backward || pass == Pass::backward_weight;
  const bool downwards = input || weight;
  const int first_layer = walk.layer_of[first_segment], last_layer = walk.layer_of[end_segment - 1];
  for (int i = first_layer; i <= last_layer; ++i) {
    const int layer = downwards ? first_layer + last_layer - i : i;
    const int first = std::max(first_segment, walk.first_segment[layer]);
    const int end = std::min(end_segment, walk.first_segment[layer + 1]);
    for (int s = first; s < end; ++s) {
      const LayerCost& cost = segments[s]->cost;
      if (pass == Pass::forward) add(s, cost.forward);
      if (pass == Pass::recompute) add(s, cost.recompute);
      if (input) add(s, cost.backward_input);
    }
    // In a split pass, decides which half computes the gradients of a segment's weights.
    for (int s = first; s < end; ++s)
      if (leaves_weights(*segments[s]) ? weight : input) add(s, segments[s]->cost.backward_weight);
  }
  return work;
}

int shared_work(StepPlan& plan, const WorkKey& key, const std::function<Work()>& make) {
  const auto [known, fresh] = plan.pass_works.try_emplace(key, static_cast<int>(plan.schedule.works.size()));
  if (fresh) plan.schedule.works.push_back(make());
  return known->second;
}

Work ring_work(const StepPlan& plan, Pass pass, int segment, int step) {
  const Walk& walk = plan.walk;
  const Segment& attention = *walk.segments[static_cast<std::size_t>(segment)];
  const RingStep& its = attention.steps[static_cast<std::size_t>(step)];
  const bool forwards = pass == Pass::forward || pass == Pass::recompute;
  Work work;
  work.precision = plan.scenario.training.precision;
  work.name = fmt::format("{} {}, step {}", kPassNames[static_cast<std::size_t>(pass)],
                          segments_text(plan, segment, segment + 1), step);
  work.kernels = forwards ? its.forward : its.backward;
  double& flops = pass == Pass::recompute ? work.extra_flops : work.model_flops;
  flops = its.masked * product_flops(work.kernels) / duplicates(walk, attention.kind);
  if (pass == Pass::backward && step == 0) append(work.kernels, attention.cost.backward_weight);
  return work;
}

Work take_loss(StepPlan& plan, int replicas) {
  Work loss;
  loss.name = "loss";
  loss.precision = plan.scenario.training.precision;
  LayerCost& last = plan.layers.back();
  std::vector<LayerCost*> costs = {&last};
  for (Segment& segment : plan.model.back().segments) costs.push_back(&segment.cost);
  for (std::vector<Kernel>* pass : {&last.forward, &last.backward_input})
    for (Kernel kernel : *pass) {
      if (!kernel.loss) continue;
      kernel.bytes *= replicas;
      loss.kernels.push_back(kernel);
    }
  for (LayerCost* cost : costs) {
    for (std::vector<Kernel>* pass : {&cost->forward, &cost->backward_input})
      std::erase_if(*pass, [](const Kernel& kernel) { return kernel.loss; });
    cost->saved_bytes -= cost->loss_saved_bytes;
  }
  return loss;
}

int add_buffer(Program& program, std::string name, double bytes) {
  Tensor tensor;
  tensor.kind = TensorKind::buffer;
  tensor.name = std::move(name);
  tensor.bytes = bytes;
  return add_tensor(program, std::move(tensor));
}

Kernel memory_kernel(double bytes, double launches) {
  Kernel kernel = moves(bytes / launches);
  kernel.count = launches;
  return kernel;
}

Op compute_op(StepPlan& plan, Program& program, std::string name, Pass pass, Work work) {
  Op op;
  op.name = std::move(name);
  op.stream = stream_named(program, "compute");
  op.pass = pass;
  plan.schedule.works.push_back(std::move(work));
  op.work = static_cast<int>(plan.schedule.works.size()) - 1;
  return op;
}

void add_optimizer_state(const StepPlan& plan, StageProgram& stage) {
  if (!stage.optimizer_state.empty()) return;
  const Training& training = plan.scenario.training;
  const double of_parameter =
      state_bytes(training.optimizer, training.precision, training.gradient_precision).optimizer;
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    const Bucket& bucket = stage.buckets[b];
    stage.optimizer_state.push_back(-1);
    if (bucket.parameters == 0 || of_parameter == 0) continue;
    Tensor state;
    state.kind = TensorKind::optimizer_state;
    state.name = fmt::format("optimizer state {}", b);
    state.first_layer = bucket.first_layer;
    state.last_layer = bucket.last_layer;
    state.shards = stage.held.optimizer;
    state.bytes = kept_parameters(plan, bucket, state.shards) * of_parameter;
    stage.optimizer_state.back() = add_tensor(stage.program, std::move(state));
  }
}

// Returns the update of `parameters` parameters, scaled from the time measured for all parameters of the
// model.
Kernel measured_update(const ProfiledModel& profiled, double parameters) {
  const double all = std::accumulate(profiled.parameters.begin(), profiled.parameters.end(), 0.0);
  Kernel kernel;
  kernel.kind = Kernel::Kind::fixed;
  kernel.seconds = profiled.optimizer_s * parameters / all;
  kernel.launches = profiled.optimizer_kernels;
  kernel.wait_s = profiled.optimizer_wait_s;
  return kernel;
}

Op optimizer_op(StepPlan& plan, StageProgram& stage) {
  const Training& training = plan.scenario.training;
  Work work;
  work.name =
      fmt::format("{} stage {}", kOptimizerNames[static_cast<std::size_t>(training.optimizer)], stage.stage);
  work.precision = training.precision;
  double parameters = 0;
  for (const Bucket& bucket : stage.buckets)
    parameters += kept_parameters(plan, bucket, stage.held.optimizer);
  const auto* profiled = std::get_if<ProfiledModel>(&plan.scenario.model.shape);
  if (profiled && profiled->optimizer_s > 0) {
    work.kernels = {measured_update(*profiled, parameters)};
  } else {
    work.parameters_updated = parameters;
    work.optimizer_bytes =
        parameters * update_bytes(training.optimizer, training.precision, training.gradient_precision);
  }
  Op op = compute_op(plan, stage.program, "optimizer", Pass::optimizer, std::move(work));
  op.action.kind = Action::Kind::update;
  op.first_layer = stage.layers.first;
  op.last_layer = stage.layers.last;
  for (int send : stage.sends) op.after.push_back({send});
  for (const char* stream : {"gradients", kSecondGradients})
    if (const int sync = last_op_of_stream(stage.program, find_stream(stage.program, stream)); sync >= 0)
      op.after.push_back({sync});
  add_optimizer_state(plan, stage);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    if (stage.buckets[b].parameters == 0) continue;
    op.reads.push_back(stage.gradients[b]);
    op.writes.push_back(stage.weights[b]);
    if (stage.optimizer_state[b] >= 0) op.writes.push_back(stage.optimizer_state[b]);
  }
  return op;
}

Op exchange_op(Program& program, std::string name, const std::string& stream, Message::Direction direction,
               const std::vector<Peer>& peers, double bytes) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::exchange;
  op.purpose = Purpose::data;
  op.stream = stream_named(program, stream);
  for (const Peer& peer : peers) {
    Message message;
    message.direction = direction;
    message.peer = peer;
    message.bytes = bytes;
    op.messages.push_back(std::move(message));
  }
  return op;
}

Op bucket_exchange(Program& program, std::string name, const std::string& stream, const Bucket& bucket,
                   Message::Direction direction, const std::vector<Peer>& peers, double bytes) {
  Op op = exchange_op(program, std::move(name), stream, direction, peers, bytes);
  op.pass = Pass::gradient_sync;
  op.purpose = Purpose::gradient_sync;
  op.first_layer = bucket.first_layer;
  op.last_layer = bucket.last_layer;
  return op;
}

Op change_op(const StepPlan& plan, const Program& program, const ValueChange& change, Pass pass) {
  constexpr std::array kKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                 CollectiveKind::all_gather, CollectiveKind::all_to_all};
  Op op;
  op.kind = OpKind::collective;
  op.pass = pass;
  op.purpose =
      is_expert_exchange(change)
          ? Purpose::experts
          : find_axis(plan.walk.factors[static_cast<std::size_t>(change.change.factors.front())].axis)
                ->purpose;
  op.first_layer = op.last_layer = change.layer;
  op.action.kind = Action::Kind::change;
  op.action.part = change.value;
  op.action.route = change.route;
  op.action.step = change.step;
  if (change.maker == SegmentKind::maximum) op.collective.reduction = Collective::Reduction::maximum;
  op.collective.kind = kKinds[static_cast<std::size_t>(change.change.kind)];
  op.collective.channels = plan.scenario.strategy.channels;
  op.collective.group = group_of(plan, change.change.factors);
  double bytes = change.change.elements * change.element;
  const double members = group_size(plan.schedule.roles.front(), op.collective.group);
  if (op.collective.kind == CollectiveKind::all_to_all) bytes /= members * members;
  if (op.collective.kind == CollectiveKind::all_gather && op.purpose == Purpose::tensor &&
      change.layer + 1 < static_cast<int>(plan.model.size()))
    bytes *= gathered_share(plan.scenario);
  if (op.purpose == Purpose::experts)
    bytes *= dispatched_share(plan.scenario, endpoints_of(plan, program, op.collective.group));
  op.collective.bytes = bytes;
  if (op.collective.kind == CollectiveKind::all_reduce)
    op.collective.algorithm =
        plan.algorithms->or_ring(endpoints_of(plan, program, op.collective.group), bytes);
  return op;
}

double gathered_share(const Scenario& scenario) {
  constexpr double kCast = 1;  // bytes of an element
  const Precision precision = scenario.training.precision;
  return scenario.framework.narrow_gathers && casts_operands(precision) ? kCast / element_bytes(precision)
                                                                        : 1;
}

int sum_partial_gradients(const StepPlan& plan, StageProgram& stage, std::size_t number, int gradients) {
  const Bucket& bucket = stage.buckets[number];
  const double element = element_bytes(plan.scenario.training.gradient_precision);
  std::map<std::vector<int>, double> parameters;  // by factors
  // Gradients of a layer that is in two buckets are sent with its first segment, whose gradients come last.
  const auto holds = [&](int layer) {
    return layer >= bucket.first_layer && layer <= bucket.last_layer &&
           plan.walk.first_segment[static_cast<std::size_t>(layer)] >= bucket.first_segment;
  };
  for (const PartialGradient& partial : plan.walk.partial_gradients)
    if (holds(partial.layer)) parameters[partial.factors] += partial.parameters;
  int last = -1;
  for (const auto& [factors, elements] : parameters) {
    ValueChange sum;
    sum.change = {Change::Kind::all_reduce, factors, elements, {}};
    sum.element = element;
    Op op = change_op(plan, stage.program, sum, Pass::backward);
    op.name = fmt::format("sum shared gradients of bucket {}", number);
    op.first_layer = bucket.first_layer;
    op.last_layer = bucket.last_layer;
    op.pass = Pass::gradient_sync;
    op.action = {};
    op.action.kind = Action::Kind::sum_shared;
    for (const int factor : factors) op.action.part |= 1 << factor;
    op.reads = op.writes = {gradients};
    last = add_op(stage.program, std::move(op));
  }
  return last;
}

Op collective_op(const StepPlan& plan, Program& program, std::string name, const std::string& stream,
                 CollectiveKind kind, double bytes, const std::vector<GroupAxis>* axes) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::collective;
  op.stream = stream_named(program, stream);
  op.pass = Pass::gradient_sync;
  op.purpose = Purpose::gradient_sync;
  op.collective.kind = kind;
  op.collective.channels = plan.scenario.strategy.channels;
  op.collective.group.axes = axes ? *axes : plan.gradient_axes;
  op.collective.bytes = bytes;
  if (kind == CollectiveKind::all_reduce)
    op.collective.algorithm = plan.algorithms->of(endpoints_of(plan, program, op.collective.group), bytes);
  return op;
}

bool holds_tied_embedding(const StepPlan& plan, const StageProgram& stage, std::size_t number) {
  if (plan.tied_parameters == 0 || (stage.stage > 0 && stage.stage < stage.stages - 1)) return false;
  const int layer = stage.stage == 0 ? stage.layers.first : stage.layers.last;
  const Bucket& bucket = stage.buckets[number];
  if (layer < bucket.first_layer || layer > bucket.last_layer) return false;
  // The very first segment looks up the embedding table, and the very last one multiplies with it.
  const int segment =
      stage.stage == 0 ? plan.walk.first_segment[layer] : plan.walk.first_segment[layer + 1] - 1;
  return bucket.whole_layers() || (segment >= bucket.first_segment && segment < bucket.end_segment);
}

void sync_tied_embedding(const StepPlan& plan, StageProgram& stage) {
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    if (!holds_tied_embedding(plan, stage, b)) continue;
    Op op = collective_op(plan, stage.program, "all-reduce tied embedding", "gradients",
                          CollectiveKind::all_reduce,
                          plan.tied_parameters * element_bytes(plan.scenario.training.gradient_precision) /
                              stage.held.optimizer);
    op.first_layer = op.last_layer = stage.stage == 0 ? stage.layers.first : stage.layers.last;
    op.action.kind = Action::Kind::sum_tied;
    op.collective.group.axes = {{plan.pipeline_axis, 0, 1, {0, stage.stages - 1}}};
    op.collective.algorithm = plan.algorithms->or_ring(endpoints_of(plan, stage.program, op.collective.group),
                                                       op.collective.bytes.base);
    op.after = {{stage.backward_of_bucket[b]}};
    // The bucket's own sum, and the op that copies it, can be on other streams.
    const std::vector<Op>& ops = stage.program.ops;
    for (int i = static_cast<int>(ops.size()) - 1; i > stage.backward_of_bucket[b]; --i) {
      const std::vector<int>& writes = ops[static_cast<std::size_t>(i)].writes;
      if (std::find(writes.begin(), writes.end(), stage.gradients[b]) == writes.end()) continue;
      if (ops[static_cast<std::size_t>(i)].stream != op.stream) op.after.push_back({i});
      break;
    }
    op.reads = op.writes = {stage.gradients[b]};
    add_op(stage.program, std::move(op));
  }
}

void note_tied_embedding(StepPlan& plan) {
  if (plan.tied_parameters > 0)
    plan.notes.emplace_back(
        "The first and the last stage both hold the tied embedding and add up its gradients.");
}

}  // namespace rehearse
