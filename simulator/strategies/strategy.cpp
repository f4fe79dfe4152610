#include "simulator/strategies/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/base/error.hpp"
#include "simulator/costs/memory.hpp"
#include "simulator/strategies/data_parallel.hpp"
#include "simulator/strategies/parameter_server.hpp"
#include "simulator/strategies/pipeline.hpp"

namespace rehearse {
namespace {

[[noreturn]] void refuse(const Scenario& scenario, const std::string& message) {
  throw InputError({scenario.name, 0, 0}, message);
}

PassShape pass_shape(const Training& training, Recompute recompute) {
  return {training.micro_batch, training.sequence_length, training.precision, recompute};
}

// Axes of the workers' mesh: those that the placement names, in its order, then the others.
std::vector<Axis> worker_axes(const StrategyChoice& strategy) {
  std::vector<Axis> axes;
  const auto add = [&](const std::string& name) {
    const bool known = std::any_of(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == name; });
    if (known) return;
    if (name == "data") axes.push_back({name, strategy.data});
    if (name == "pipeline") axes.push_back({name, strategy.pipeline});
  };
  for (const std::string& name : strategy.placement) add(name);
  add("data");
  add("pipeline");
  return axes;
}

// The table that the first stage's input and the last stage's output layer share.
double tied_parameters(const Scenario& scenario) {
  const auto* transformer = std::get_if<Transformer>(&scenario.model.shape);
  if (!transformer || scenario.strategy.pipeline == 1 || !transformer->tied_embeddings) return 0;
  return transformer->causal || transformer->masked_lm_head ? transformer->vocabulary * transformer->hidden
                                                            : 0;
}

StepPlan begin_plan(const Scenario& scenario) {
  const Training& training = scenario.training;
  StepPlan plan{scenario, layer_costs(scenario.model, pass_shape(training, training.recompute)), {}, 0, 1, 0,
                {}};
  const std::vector<LayerCost> whole =
      training.recompute == Recompute::none
          ? plan.layers
          : layer_costs(scenario.model, pass_shape(training, Recompute::none));
  for (std::size_t i = 0; i < plan.layers.size(); ++i)
    plan.transient_bytes.push_back(std::max(0.0, whole[i].saved_bytes - plan.layers[i].saved_bytes));
  plan.tied_parameters = tied_parameters(scenario);
  plan.layers.back().parameters += plan.tied_parameters;

  Role workers;
  const Mesh mesh(worker_axes(scenario.strategy));
  plan.data_axis = mesh.axis("data");
  plan.pipeline_axis = mesh.axis("pipeline");
  workers.meshes.push_back(mesh);
  plan.schedule.roles.push_back(std::move(workers));
  plan.schedule.samples = training.micro_batch * scenario.microbatches * scenario.strategy.data;
  plan.schedule.tokens = plan.schedule.samples * tokens_per_sample(scenario.model, training.sequence_length);
  return plan;
}

std::vector<int> choose_stages(const StepPlan& plan) {
  const Scenario& scenario = plan.scenario;
  const int layers = static_cast<int>(plan.layers.size()), stages = scenario.strategy.pipeline;
  if (stages > layers)
    refuse(scenario, fmt::format("strategy.pipeline is {}; allowed: at most {}, the number of layers of {}",
                                 stages, layers, scenario.model.name));
  const std::vector<int>& given = scenario.strategy.stage_layers;
  if (given.empty()) {
    std::vector<double> times_s;
    for (const LayerCost& layer : plan.layers)
      times_s.push_back(layer_time_s(layer, scenario.cluster->node().device, scenario.training.precision));
    return balance_stages(times_s, stages);
  }
  if (static_cast<int>(given.size()) != stages)
    refuse(scenario,
           fmt::format("strategy.stage_layers has {} numbers; allowed: {}, one for each pipeline stage",
                       given.size(), stages));
  if (*std::min_element(given.begin(), given.end()) < 1)
    refuse(scenario, "strategy.stage_layers has a stage without layers; allowed: at least 1 in each");
  if (const int sum = std::accumulate(given.begin(), given.end(), 0); sum != layers)
    refuse(scenario,
           fmt::format("strategy.stage_layers add up to {}; allowed: {}, the number of layers of {}", sum,
                       layers, scenario.model.name));
  return given;
}

StageProgram begin_stage(const StepPlan& plan, int number, LayerRange layers) {
  const Scenario& scenario = plan.scenario;
  const StrategyChoice& strategy = scenario.strategy;
  const bool server = strategy.gradients == GradientSync::parameter_server;
  StageProgram stage;
  stage.stage = number;
  stage.stages = strategy.pipeline;
  stage.layers = layers;
  stage.program.name = strategy.pipeline > 1 ? fmt::format("stage {}", number) : "worker";
  stage.program.where = at_stage(plan, number);
  stage.program.streams = {"compute"};

  std::vector<double> parameters;
  for (int i = layers.first; i <= layers.last; ++i) parameters.push_back(plan.layers[i].parameters);
  if (server || strategy.data > 1) {
    stage.buckets = gradient_buckets(
        parameters, layers.first, element_bytes(scenario.training.gradient_precision), strategy.bucket_bytes);
  } else {  // nothing is sent
    stage.buckets = {{layers.first, layers.last, std::accumulate(parameters.begin(), parameters.end(), 0.0)}};
  }
  stage.cut_last_backward = strategy.overlap && stage.buckets.size() > 1;
  stage.cut_first_forward = stage.cut_last_backward && server;

  const StateBytes bytes = state_bytes(scenario.training.optimizer, scenario.training.precision,
                                       scenario.training.gradient_precision);
  for (std::size_t b = 0; b < stage.buckets.size(); ++b) {
    const Bucket& bucket = stage.buckets[b];
    const auto tensor = [&](TensorKind kind, const char* name, Precision type, double per_parameter) {
      if (bucket.parameters == 0) return -1;
      Tensor t;
      t.kind = kind;
      t.name = fmt::format("{} {}", name, b);
      t.first_layer = bucket.first_layer;
      t.last_layer = bucket.last_layer;
      t.type = type;
      t.bytes = bucket.parameters * per_parameter;
      return add_tensor(stage.program, std::move(t));
    };
    stage.weights.push_back(tensor(TensorKind::weight, "weights", scenario.training.precision, bytes.weight));
    stage.gradients.push_back(
        tensor(TensorKind::gradient, "gradients", scenario.training.gradient_precision, bytes.gradient));
  }
  return stage;
}

// Where nothing else ends the step, it ends when the last sends have ended.
void end_stage(StepPlan& plan, StageProgram& stage) {
  const bool optimizer = std::any_of(stage.program.ops.begin(), stage.program.ops.end(),
                                     [](const Op& op) { return op.pass == Pass::optimizer; });
  if (optimizer || stage.sends.empty()) return;
  Op end = marker(plan, stage, "end step");
  for (int send : stage.sends) end.after.push_back({send});
  add_op(stage.program, std::move(end));
}

// Ranks sit on the devices in their order, servers on processors.
std::vector<int> place(const Scenario& scenario, const Schedule& schedule) {
  const Cluster& cluster = *scenario.cluster;
  const int workers = schedule.roles.front().size();
  if (workers > cluster.devices())
    refuse(scenario,
           fmt::format("strategy: data {} x pipeline {} needs {} devices; the cluster has {}",
                       scenario.strategy.data, scenario.strategy.pipeline, workers, cluster.devices()));
  std::vector<int> endpoints(workers);
  std::iota(endpoints.begin(), endpoints.end(), 0);
  if (schedule.roles.size() == 1) return endpoints;
  const ParameterServer& choice = scenario.strategy.parameter_server;
  if (!choice.colocated && choice.servers > cluster.server_nodes())
    refuse(scenario,
           fmt::format("strategy.parameter_server.servers is {}; allowed: at most {}, the cluster's "
                       "server_nodes, or placement \"colocated\"",
                       choice.servers, cluster.server_nodes()));
  for (int i = 0; i < choice.servers; ++i) {
    const long node = static_cast<long>(i) * cluster.nodes() / choice.servers;
    endpoints.push_back(choice.colocated ? cluster.processor_of_node(static_cast<int>(node))
                                         : cluster.server_processor(i));
  }
  return endpoints;
}

std::vector<std::string> assumptions(const StepPlan& plan, bool servers) {
  const Scenario& scenario = plan.scenario;
  const Device& device = scenario.cluster->node().device;
  const auto precision = static_cast<std::size_t>(scenario.training.precision);
  const bool profiled = std::holds_alternative<ProfiledModel>(scenario.model.shape);
  std::vector<std::string> notes;
  if (!profiled && device.peak_flops[precision].value <= 0)
    notes.push_back(fmt::format("{} has no {} units: products are computed at its fp32 rate.", device.title,
                                kPrecisionNames[precision]));
  if (plan.tied_parameters > 0)
    notes.push_back(
        servers ? "First and last stage each keep the tied embedding, and the servers update it for both."
                : "First and last stage each keep the tied embedding and add up its gradients.");
  return notes;
}

}  // namespace

Plan write_schedule(const Scenario& scenario) {
  StepPlan plan = begin_plan(scenario);
  Plan result;
  result.stage_layers = choose_stages(plan);
  const std::vector<LayerRange> ranges = layer_ranges(result.stage_layers);

  const bool trained = std::any_of(plan.layers.begin(), plan.layers.end(),
                                   [](const LayerCost& layer) { return layer.parameters > 0; });
  const bool servers = trained && scenario.strategy.gradients == GradientSync::parameter_server;
  if (servers)
    plan.schedule.roles.push_back(
        {"server", {Mesh({{"server", scenario.strategy.parameter_server.servers}})}});

  std::vector<StageProgram> stages;
  for (int s = 0; s < scenario.strategy.pipeline; ++s) {
    StageProgram& stage = stages.emplace_back(begin_stage(plan, s, ranges[s]));
    write_passes(plan, stage);
    if (servers)
      write_push_and_pull(plan, stage);
    else
      write_all_reduce(plan, stage);
    end_stage(plan, stage);
  }
  if (servers) plan.schedule.programs.push_back(server_program(plan, stages));
  for (int s = scenario.strategy.pipeline - 1; s >= 0; --s)
    plan.schedule.programs.insert(plan.schedule.programs.begin(), std::move(stages[s].program));

  result.endpoints = place(scenario, plan.schedule);
  result.notes = assumptions(plan, servers);
  result.schedule = std::make_shared<const Schedule>(std::move(plan.schedule));
  return result;
}

}  // namespace rehearse
