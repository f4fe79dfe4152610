#include "simulator/planner/plan_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "models/text/error.hpp"
#include "models/text/number_in.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

// Minimum tokens of a share of a sequence: for shorter shares, sending keys and values takes longer than
// computing with them, on every device that is described here.
constexpr double kLeastTokensOfContext = 2048;
// Maximum tokens of a micro-batch, far more than even a transformer's largest products need.
constexpr double kMostTokens = 131'072;
constexpr int kMostMicroBatch = 1024;
// Maximum number of values of recompute_layers that are tried, evenly spaced.
constexpr int kMostRecomputeSteps = 12;
// All numbers of virtual stages up to the first constant are tried. Beyond it, only those that divide the
// blocks evenly, with the embedding and the output layer in addition to the blocks or among them.
constexpr int kFewVirtualStages = 4, kMostVirtualStages = 16;

std::vector<int> divisors(std::int64_t number, std::int64_t most) {
  std::vector<int> result;
  for (std::int64_t d = 1; d <= most && d <= number; ++d)
    if (number % d == 0) result.push_back(static_cast<int>(d));
  return result;
}

const std::vector<std::string>* given(const SpaceLimits& limits, std::string_view key) {
  const auto found = limits.find(key);
  return found == limits.end() ? nullptr : &found->second;
}

constexpr int kMost = 1'000'000;

int limited_integer(std::string_view key, const std::string& text, int least, int most) {
  const auto value = number_in<int>(text);
  if (!value || *value < least || *value > most)
    throw InputError(
        {fmt::format("--vary {}", key)},
        fmt::format("has the value \"{}\"; allowed: whole numbers from {} to {}", text, least, most));
  return *value;
}

// Returns the given values, or the automatic ones if there are none.
std::vector<int> integers(const SpaceLimits& limits, std::string_view key, std::vector<int> automatic,
                          int least = 1, int most = kMost) {
  const std::vector<std::string>* texts = given(limits, key);
  if (!texts) return automatic;
  std::vector<int> values;
  for (const std::string& text : *texts) values.push_back(limited_integer(key, text, least, most));
  return values;
}

template <typename Enum, std::size_t N>
std::vector<Enum> choices(const SpaceLimits& limits, std::string_view key,
                          const std::array<std::string_view, N>& names, std::vector<Enum> automatic) {
  const std::vector<std::string>* texts = given(limits, key);
  if (!texts) return automatic;
  std::vector<Enum> values;
  for (const std::string& text : *texts) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found == names.end())
      throw InputError({fmt::format("--vary {}", key)},
                       fmt::format("has the value \"{}\"; allowed: {}", text, fmt::join(names, ", ")));
    values.push_back(static_cast<Enum>(found - names.begin()));
  }
  return values;
}

std::vector<bool> truths(const SpaceLimits& limits, std::string_view key, std::vector<bool> automatic) {
  static constexpr std::array<std::string_view, 2> kNames = {"false", "true"};
  const std::vector<std::string>* texts = given(limits, key);
  if (!texts) return automatic;
  std::vector<bool> values;
  for (const int value : choices<int>(limits, key, kNames, {})) values.push_back(value == 1);
  return values;
}

const Transformer* transformer_of(const Scenario& scenario) {
  return std::get_if<Transformer>(&scenario.model.shape);
}

bool recomputable(const Scenario& scenario) {
  return !is_profiled(scenario.model);
}

}  // namespace

std::vector<std::string> limited_keys() {
  return {"strategy.tensor",
          "strategy.context",
          "strategy.context_kind",
          "strategy.pipeline",
          "strategy.data",
          "strategy.expert",
          "strategy.expert_tensor",
          "strategy.sequence_parallel",
          "strategy.schedule",
          "strategy.virtual_stages",
          "strategy.zero_stage",
          "strategy.all_reduce",
          "strategy.bucket_mb",
          "strategy.parameter_server.servers",
          "training.micro_batch",
          "training.recompute",
          "training.recompute_layers"};
}

std::vector<CoreChoice> splits(const Scenario& scenario, const SpaceLimits& limits) {
  std::vector<CoreChoice> result;
  const Transformer* transformer = transformer_of(scenario);
  const bool perceptron = std::holds_alternative<MultiLayerPerceptron>(scenario.model.shape);
  const int devices = scenario.cluster->devices(), in_node = scenario.cluster->node().devices;
  const double tokens = tokens_per_sample(scenario.model, scenario.training.sequence_length);
  const int experts = transformer ? static_cast<int>(transformer->experts) : 0;

  // Tensor parallelism beyond two nodes would send each layer's activations over the network.
  const auto tensors =
      integers(limits, "strategy.tensor",
               transformer || perceptron ? divisors(devices, std::max(2 * in_node, 1)) : std::vector<int>{1});
  const auto kinds =
      choices<ContextKind>(limits, "strategy.context_kind", kContextKindNames,
                           {ContextKind::ring, ContextKind::all_gather, ContextKind::all_to_all});
  for (const int tensor : tensors) {
    if (tensor < 1 || devices % tensor != 0) continue;
    const auto most_context = static_cast<std::int64_t>(transformer ? tokens / kLeastTokensOfContext : 1);
    const auto contexts = integers(limits, "strategy.context",
                                   divisors(devices / tensor, std::max<std::int64_t>(1, most_context)));
    for (const int context : contexts) {
      if (context < 1 || devices / tensor % context != 0) continue;
      for (const ContextKind kind : kinds) {
        if (context == 1 && kind != kinds.front()) continue;
        for (const bool sequence : truths(limits, "strategy.sequence_parallel", {true, false})) {
          if (tensor == 1 && sequence) continue;
          CoreChoice split;
          split.tensor = tensor;
          split.context = context;
          split.context_kind = context > 1 ? kind : ContextKind::ring;
          split.sequence_parallel = sequence;
          if (experts == 0) {
            result.push_back(split);
            continue;
          }
          for (const int expert : integers(limits, "strategy.expert", divisors(experts, devices)))
            for (const int shared : integers(limits, "strategy.expert_tensor",
                                             tensor > 1 ? std::vector<int>{0, 1} : std::vector<int>{0}, 0)) {
              if (expert < 1 || devices % expert != 0) continue;
              split.expert = expert;
              split.expert_tensor = shared;
              result.push_back(split);
            }
        }
      }
    }
  }
  // A single tensor rank has no sequence to shard, so the limit alone rules out all plans.
  if (result.empty() && given(limits, "strategy.sequence_parallel"))
    throw InputError({"--vary strategy.sequence_parallel"},
                     "leaves no plan; allowed: false with tensor = 1, or tensor degrees above 1");
  return result;
}

namespace {

// Returns the schedules that plans choose from: first those whose activations do not grow with the number of
// micro-batches.
std::vector<PipelineSchedule> planned_schedules() {
  std::vector<PipelineSchedule> schedules;
  for (std::size_t i = 0; i < kPipelineScheduleNames.size(); ++i)
    if (!order_of(static_cast<PipelineSchedule>(i)).mirrored)
      schedules.push_back(static_cast<PipelineSchedule>(i));
  std::stable_partition(schedules.begin(), schedules.end(),
                        [](PipelineSchedule schedule) { return !order_of(schedule).retains_all; });
  return schedules;
}

void add_schedules(std::vector<CoreChoice>& result, const Scenario& scenario, const CoreChoice& core,
                   int layers, int microbatches, const SpaceLimits& limits) {
  if (core.pipeline == 1) {
    result.push_back(core);
    return;
  }
  // A mirrored schedule equals another one with half as many stages and twice as many data-parallel ranks, so
  // it is not tried.
  for (const PipelineSchedule schedule :
       choices<PipelineSchedule>(limits, "strategy.schedule", kPipelineScheduleNames, planned_schedules())) {
    const OrderEntry& entry = order_of(schedule);
    if (entry.mirrored || core.pipeline < entry.fewest_stages) continue;
    if (scenario.strategy.blocking_p2p && !entry.ahead) continue;
    if (!fits_groups(entry, {.stages = core.pipeline, .microbatches = microbatches})) continue;
    std::vector<int> chunks;
    for (int c = std::max(1, entry.fewest_chunks);
         c <= std::min({entry.most_chunks, layers / core.pipeline, kMostVirtualStages}); ++c)
      if (c <= kFewVirtualStages || (layers - 2) % (core.pipeline * c) == 0 ||
          layers % (core.pipeline * c) == 0)
        chunks.push_back(c);
    for (const int c : integers(limits, "strategy.virtual_stages", chunks)) {
      if (c < entry.fewest_chunks || c > entry.most_chunks || core.pipeline * c > layers) continue;
      if (std::int64_t{microbatches} * core.pipeline * c > kMaxPasses) continue;
      CoreChoice with = core;
      with.schedule = schedule;
      with.virtual_stages = c;
      for (const StageCut cut : {StageCut::by_time, StageCut::by_number}) {
        with.cut = cut;
        result.push_back(with);
      }
    }
  }
}

}  // namespace

std::vector<CoreChoice> pipelines(const Scenario& scenario, const CoreChoice& split, int layers,
                                  const SpaceLimits& limits) {
  std::vector<CoreChoice> result;
  const int ranks = scenario.cluster->devices() / (split.tensor * split.context);
  const auto global_batch = static_cast<std::int64_t>(scenario.training.global_batch);
  const double tokens = tokens_per_sample(scenario.model, scenario.training.sequence_length);
  const bool profiled = is_profiled(scenario.model);
  for (const int pipeline : integers(limits, "strategy.pipeline", divisors(ranks, layers))) {
    if (pipeline < 1 || ranks % pipeline != 0 || pipeline > layers) continue;
    CoreChoice core = split;
    core.pipeline = pipeline;
    core.data = ranks / pipeline;
    const std::vector<int> allowed = integers(limits, "strategy.data", {core.data});
    if (std::count(allowed.begin(), allowed.end(), core.data) == 0) continue;
    if (global_batch % core.data != 0) continue;
    const int expert_tensor = core.expert_tensor > 0 ? core.expert_tensor : core.tensor;
    if (core.tensor * core.context * core.data % (core.expert * expert_tensor) != 0) continue;
    const std::int64_t samples = global_batch / core.data;
    const auto most = tokens > 0 ? std::max<std::int64_t>(1, static_cast<std::int64_t>(kMostTokens / tokens))
                                 : std::int64_t{kMostMicroBatch};
    std::vector<int> sizes = divisors(samples, most);
    if (profiled) sizes = {static_cast<int>(scenario.training.micro_batch)};
    for (const int size : integers(limits, "training.micro_batch", sizes)) {
      if (size < 1 || samples % size != 0 || samples / size > kMaxMicrobatches) continue;
      core.micro_batch = size;
      add_schedules(result, scenario, core, layers, static_cast<int>(samples / size), limits);
    }
  }
  return result;
}

std::vector<CoreChoice> recomputations(const Scenario& scenario, const CoreChoice& core,
                                       const std::function<int(const CoreChoice&)>& most,
                                       const SpaceLimits& limits) {
  std::vector<Recompute> kinds = {Recompute::none};
  if (recomputable(scenario)) {
    if (transformer_of(scenario) && scenario.training.attention == AttentionKernels::unfused)
      kinds.push_back(Recompute::selective);
    if (scenario.training.recompute == Recompute::operators) kinds.push_back(Recompute::operators);
    kinds.push_back(Recompute::full);
  }
  std::vector<CoreChoice> result;
  for (const Recompute kind : choices<Recompute>(limits, "training.recompute", kRecomputeNames, kinds)) {
    CoreChoice with = core;
    with.recompute = kind;
    result.push_back(with);
    if (kind != Recompute::full) continue;
    const int all = most(with);
    std::vector<int> steps;
    for (int step = 1; step <= kMostRecomputeSteps && all > 1; ++step) {
      const int layers = static_cast<int>(
          std::ceil(static_cast<double>(all - 1) * step / std::min(kMostRecomputeSteps, all - 1)));
      if (layers < all && (steps.empty() || layers > steps.back())) steps.push_back(layers);
    }
    for (const int layers : integers(limits, "training.recompute_layers", steps, 0)) {
      if (layers < 1 || layers >= all) continue;
      with.recompute_layers = layers;
      result.push_back(with);
    }
  }
  return result;
}

std::vector<GradientChoice> gradient_choices(const Scenario& scenario, const CoreChoice& core,
                                             const SpaceLimits& limits) {
  constexpr std::array kBuckets = {25, 100, 400};  // MiB: PyTorch's default and larger ones
  const int copies = core.data * core.context;
  const bool placeable = core.pipeline > 1 && core.data > 1;
  std::vector<GradientChoice> result;
  const auto add = [&](GradientChoice choice) {
    result.push_back(choice);
    choice.pipeline_inside = true;
    if (placeable) result.push_back(choice);
  };
  if (copies == 1) return {{}};
  const std::vector<int> stages = integers(limits, "strategy.zero_stage", {0, 1, 2, 3}, 0, 3);
  const auto wants = [&](int stage) {
    return std::count(stages.begin(), stages.end(), stage) > 0 &&
           (stage == 0 || gradient_strategy(scenario)->sharded(stage) != nullptr);
  };
  if (wants(0)) {
    GradientChoice sums;
    for (const Algorithm algorithm : choices<Algorithm>(limits, "strategy.all_reduce", kAlgorithmNames,
                                                        {Algorithm::automatic, Algorithm::ring}))
      for (const int bucket : integers(limits, "strategy.bucket_mb", {kBuckets.begin(), kBuckets.end()})) {
        sums.all_reduce = algorithm;
        sums.bucket_mb = bucket;
        add(sums);
      }
  }
  for (const int stage : {1, 2, 3}) {
    if (!wants(stage)) continue;
    GradientChoice shards;
    shards.sharing = static_cast<Sharing>(stage);
    add(shards);
  }
  const int in_node = scenario.cluster->node().devices / (core.tensor * core.context);
  if (wants(3) && !given(limits, "strategy.zero_stage") && core.pipeline == 1 && core.expert == 1 &&
      in_node > 1 && copies > in_node * core.context) {
    GradientChoice hybrid;
    hybrid.sharing = Sharing::weights_in_node;
    result.push_back(hybrid);
  }
  // Parameter servers on the nodes' processors, as used for small models.
  if (wants(0) && core.tensor * core.context * core.pipeline * core.expert == 1 &&
      scenario.cluster->nodes() > 1) {
    GradientChoice pushed;
    for (const int servers :
         integers(limits, "strategy.parameter_server.servers", {1, scenario.cluster->nodes()}, 0)) {
      pushed.servers = servers;
      if (servers > 0) result.push_back(pushed);
    }
  }
  return result;
}

}  // namespace rehearse
