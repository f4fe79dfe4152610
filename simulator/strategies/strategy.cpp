#include "simulator/strategies/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "models/kernels.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/layout/expert_loads.hpp"
#include "simulator/strategies/layout/stage_spread.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/batch_shares.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "simulator/strategies/programs/overlap.hpp"
#include "simulator/strategies/programs/stage_checkpoint.hpp"
#include "simulator/strategies/programs/stage_hooks.hpp"
#include "simulator/strategies/programs/stage_input.hpp"
#include "simulator/strategies/schedule_factors.hpp"
#include "simulator/strategies/schedule_key.hpp"
#include "simulator/strategies/step_plan.hpp"
#include "topologies/uplinks.hpp"

namespace rehearse {
namespace {

[[noreturn]] void refuse(const Scenario& scenario, const std::string& message) {
  throw InputError({scenario.name, 0, 0}, message);
}

// Returns the parameters of the table that the input and the output layer share, if they are on different
// stages.
double tied_parameters(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const PartPlacement placement = order_of(strategy.schedule).placement;
  const int last =
      stage_of_part(placement, strategy.pipeline, strategy.pipeline * strategy.virtual_stages - 1);
  return last == 0 ? 0 : shared_table_parameters(scenario);
}

bool sums_with_data(const Scenario& scenario) {
  return gradient_strategy(scenario)->context_gradients() == ContextGradients::with_data;
}

// Returns the parameters of experts by layer.
std::vector<double> expert_parameters(const std::vector<Layer>& layers) {
  std::vector<double> parameters;
  for (const Layer& layer : layers) {
    parameters.push_back(0);
    for (const Segment& segment : layer.segments)
      if (segment.kind == SegmentKind::expert_up || segment.kind == SegmentKind::expert_down)
        parameters.back() += segment.cost.parameters;
  }
  return parameters;
}

// Returns the layers whose successor is on another stage.
std::vector<int> last_of_stage(const Scenario& scenario, const std::vector<LayerRange>& parts) {
  const PartPlacement placement = order_of(scenario.strategy.schedule).placement;
  const int stages = scenario.strategy.pipeline;
  std::vector<int> layers;
  for (int part = 0; part + 1 < static_cast<int>(parts.size()); ++part)
    if (stage_of_part(placement, stages, part) != stage_of_part(placement, stages, part + 1))
      layers.push_back(parts[static_cast<std::size_t>(part)].last);
  return layers;
}

// The reader refuses the same settings, citing the place of the key; a scenario can also be built by hand.
void check_schedule(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const OrderEntry& entry = order_of(strategy.schedule);
  const std::string_view name = kPipelineScheduleNames[static_cast<std::size_t>(strategy.schedule)];
  if (strategy.virtual_stages > entry.most_chunks)
    refuse(scenario, fmt::format("strategy.virtual_stages is {} with schedule = \"{}\"; allowed: {}",
                                 strategy.virtual_stages, name, entry.most_chunks));
  if (strategy.virtual_stages < entry.fewest_chunks || strategy.pipeline < entry.fewest_stages)
    refuse(scenario, fmt::format("strategy.schedule is \"{}\" with pipeline {} and virtual_stages {}; "
                                 "allowed: at least {} and {}",
                                 name, strategy.pipeline, strategy.virtual_stages, entry.fewest_stages,
                                 entry.fewest_chunks));
  if (strategy.blocking_p2p && !entry.ahead)
    refuse(scenario,
           fmt::format("strategy.blocking_p2p is true with schedule = \"{}\"; allowed: false", name));
  if (!fits_groups(entry, {.stages = strategy.pipeline,
                           .microbatches = scenario.microbatches,
                           .group = strategy.microbatch_group}))
    refuse(scenario, fmt::format("strategy.schedule is \"{}\" with {} micro-batches; allowed: a multiple of "
                                 "pipeline, {}",
                                 name, scenario.microbatches, strategy.pipeline));
  if (strategy.microbatch_group > strategy.pipeline && strategy.blocking_p2p)
    refuse(scenario, fmt::format("strategy.microbatch_group is {} with blocking_p2p; allowed: pipeline, {}",
                                 strategy.microbatch_group, strategy.pipeline));
}

// Workers are on the devices in order.
std::vector<int> place_workers(const Scenario& scenario, int workers) {
  const Cluster& cluster = *scenario.cluster;
  if (workers > cluster.devices())
    refuse(scenario, fmt::format("strategy: {} needs {} devices; the cluster has {}",
                                 degrees_text(scenario.strategy), workers, cluster.devices()));
  std::vector<int> endpoints(workers);
  std::iota(endpoints.begin(), endpoints.end(), 0);
  return endpoints;
}

void add_sequence_notes(const Transformer& shape, const Scenario& scenario, std::vector<std::string>& notes) {
  if (scenario.training.sequence_length == 0 && shape.context_limit > shape.sequence_length)
    notes.push_back(
        fmt::format("Sequences of {} tokens are assumed: the model's context limit of {} tokens is not a "
                    "training length (Llama 3, which reaches 131072, was pre-trained on 8192: arXiv "
                    "2407.21783, section 3.4.1). Set training.sequence_length for other lengths.",
                    shape.sequence_length, shape.context_limit));
  if (shape.window > 0 && tokens_per_sample(scenario.model, scenario.training.sequence_length) > shape.window)
    notes.push_back(
        fmt::format("Layers with a sliding window compute and keep {} scores for each query: the kernels are "
                    "assumed to skip the keys outside the window.",
                    shape.window));
}

// Says which framework was taken by default: one that the scenario does not name.
std::string framework_note(const Scenario& scenario) {
  const Framework& framework = scenario.framework;
  const bool given = std::any_of(scenario.settings.begin(), scenario.settings.end(), [](const auto& setting) {
    return setting.first == "training.framework" || setting.first.rfind("framework.", 0) == 0;
  });
  if (framework.name.empty() || given || scenario.settings.empty()) return "";
  return fmt::format(
      "Costs of the framework are those of {} ({}), which fits the strategy's preset, the "
      "precision and the device; training.framework = \"none\" leaves them out.",
      framework.title, framework.name);
}

}  // namespace

std::vector<std::string> assumptions(const Scenario& scenario) {
  const Device& device = scenario.cluster->node().device;
  const auto precision = static_cast<std::size_t>(scenario.training.precision);
  std::vector<std::string> notes;
  const auto* times = std::get_if<ProfiledModel>(&scenario.model.shape);
  if (times && times->micro_batch > 0 && times->micro_batch != scenario.training.micro_batch)
    notes.push_back(fmt::format(
        "The times were measured with a micro-batch of {}; those with {} are assumed to be in proportion.",
        times->micro_batch, scenario.training.micro_batch));
  if (times && times->stage_deviation > 0) {
    const std::vector<double> factors = stage_factors(scenario.strategy.pipeline, times->stage_deviation);
    const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
    notes.push_back(
        fmt::format("Stages are assumed to differ: the fastest takes {:.3f}, the slowest {:.3f} times the "
                    "profiled times.",
                    *least, *most));
  }
  if (!times && device.peak_flops[precision].value <= 0)
    notes.push_back(fmt::format("{} has no {} units: products are computed at its fp32 rate.", device.title,
                                kPrecisionNames[precision]));
  const auto* transformer = std::get_if<Transformer>(&scenario.model.shape);
  if (transformer && transformer->experts > 0)
    notes.push_back(
        scenario.strategy.expert == 1
            ? fmt::format("Every device holds all {} experts of its layers (there is no expert parallelism), "
                          "and the router spreads tokens evenly over them.",
                          transformer->experts)
            : fmt::format("Each device holds {} of the {} experts of its layers.",
                          transformer->experts / scenario.strategy.expert, transformer->experts));
  if (const StrategyChoice& choice = scenario.strategy; order_of(choice.schedule).mirrored)
    notes.push_back(fmt::format(
        "Of the {} stages of {}, s and {} - s hold the same layers and do the same work: they count as {} "
        "stages with twice the data-parallel ranks.",
        2 * choice.pipeline, order_of(choice.schedule).title, 2 * choice.pipeline - 1, choice.pipeline));
  if (const StrategyChoice& choice = scenario.strategy;
      choice.stages_by == StagesBy::speed && choice.pipeline > 1)
    notes.push_back(
        fmt::format("The parts of the model have {} layers, by the speed of their slowest devices.",
                    fmt::join(cut_model(scenario).stage_layers, ", ")));
  if (const std::string note = oversubscription_note(*scenario.cluster); !note.empty()) notes.push_back(note);
  if (transformer) add_sequence_notes(*transformer, scenario, notes);
  if (std::string note = framework_note(scenario); !note.empty()) notes.push_back(std::move(note));
  if (std::string note = attention_note(scenario); !note.empty()) notes.push_back(std::move(note));
  notes.insert(notes.end(), scenario.model.notes.begin(), scenario.model.notes.end());
  notes.insert(notes.end(), scenario.notes.begin(), scenario.notes.end());
  return notes;
}

double shared_table_parameters(const Scenario& scenario) {
  const auto* transformer = std::get_if<Transformer>(&scenario.model.shape);
  if (!transformer || !transformer->tied_embeddings) return 0;
  if (!transformer->causal && !transformer->masked_lm_head) return 0;
  const int shards = pass_shape(scenario).splits.of(SegmentKind::embedding, Dim::vocabulary);
  return share_of(transformer->vocabulary, shards) * transformer->table_width();
}

StepPlan begin_step_plan(const Scenario& scenario, ModelCut cut) {
  const Training& training = scenario.training;
  StepPlan plan{scenario, std::move(cut.layers), {}, {}};
  plan.layers = costs_of(plan.model);
  plan.parts = layer_ranges(cut.stage_layers);
  plan.walk = walk(plan.model, schedule_factors(scenario), last_of_stage(scenario, plan.parts));
  plan.algorithms = std::make_shared<AlgorithmChoice>(scenario);
  for (std::size_t i = 0; i < plan.layers.size(); ++i)
    plan.transient_bytes.push_back(
        std::max(0.0, cut.keeping_all[i].saved_bytes - plan.layers[i].saved_bytes));
  plan.tied_parameters = tied_parameters(scenario);
  plan.layers.back().parameters += plan.tied_parameters;

  Role workers;
  const Mesh mesh(worker_axes(scenario.strategy));
  plan.data_axis = mesh.axis("data");
  plan.pipeline_axis = mesh.axis("pipeline");
  plan.context_axis = mesh.axis("context");
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    if (axis != plan.data_axis && !(axis == plan.context_axis && sums_with_data(scenario))) continue;
    plan.gradient_axes.push_back({axis, 0, 1, {}});
    const auto& [name, size] = mesh.axes()[static_cast<std::size_t>(axis)];
    const int apart = ranks_with_experts_apart(scenario, name);
    if (apart == 1)
      plan.expert_axes.push_back({axis, 0, 1, {}});
    else if (apart < size)
      plan.expert_axes.push_back({axis, size / apart, apart, {}});
  }
  if (places_experts(scenario)) plan.expert_parameters = expert_parameters(plan.model);
  workers.meshes.push_back(mesh);
  if (const double imbalance = scenario.strategy.expert_imbalance;
      imbalance > 0 && scenario.strategy.expert > 1 && places_experts(scenario)) {
    workers.meshes.emplace_back(expert_mesh(scenario.strategy));
    const auto experts = static_cast<int>(std::get<Transformer>(scenario.model.shape).experts);
    for (int layer = 0; layer < static_cast<int>(plan.model.size()); ++layer)
      plan.expert_loads.push_back(
          expert_loads(experts, scenario.strategy.expert, imbalance, scenario.seed, layer));
  }
  plan.input = plan_input(scenario, workers);
  plan.schedule.roles.push_back(std::move(workers));
  plan.schedule.staggered = order_of(scenario.strategy.schedule).staggered;
  plan.schedule.samples = training.micro_batch * scenario.microbatches * scenario.strategy.data;
  plan.schedule.tokens = plan.schedule.samples * tokens_per_sample(scenario.model, training.sequence_length);
  return plan;
}

std::vector<Factor> schedule_factors(const Scenario& scenario) {
  std::vector<Factor> factors = factors_of(scenario);
  const bool with_data = sums_with_data(scenario);
  for (Factor& factor : factors) factor.sums_gradients = factor.sums_gradients && with_data;
  return factors;
}

namespace {

Plan write(const Scenario& scenario, const CheckpointCycle* cycle) {
  check_schedule(scenario);
  ModelCut cut = cut_model(scenario);
  Plan result;
  result.stage_layers = cut.stage_layers;
  StepPlan plan = begin_step_plan(scenario, std::move(cut));
  plan.notes = assumptions(scenario);
  plan.endpoints = place_workers(scenario, plan.schedule.roles.front().size());

  const bool trained = std::any_of(plan.layers.begin(), plan.layers.end(),
                                   [](const LayerCost& layer) { return layer.parameters > 0; });
  if (trained)
    gradient_strategy(scenario)->write(plan);
  else  // only activations are sent
    for (int s = 0; s < scenario.strategy.pipeline; ++s)
      write_stage(StageHooks(plan, begin_stage(plan, s, {})));

  divide_batch(plan);
  overlap_communication(plan);
  complete_input(plan);
  result.checkpoint = complete_checkpoint(plan, cycle);
  add_storages(plan);

  result.endpoints = std::move(plan.endpoints);
  result.notes = std::move(plan.notes);
  result.schedule = std::make_shared<const Schedule>(std::move(plan.schedule));
  return result;
}

}  // namespace

Plan write_schedule(const Scenario& scenario) {
  return write(scenario, nullptr);
}

Plan write_schedule(const Scenario& scenario, const CheckpointCycle& cycle) {
  return write(scenario, &cycle);
}

int steps_in_schedule(const Scenario& scenario) {
  return rounds_of_input(scenario, gradient_strategy(scenario)->optimizer_steps());
}

}  // namespace rehearse
