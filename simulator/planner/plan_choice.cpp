#include "simulator/planner/plan_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

std::string quoted(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

template <typename Enum, std::size_t N>
std::string quoted(const std::array<std::string_view, N>& names, Enum value) {
  return quoted(names[static_cast<std::size_t>(value)]);
}

}  // namespace

std::vector<std::string> searched_keys() {
  return {"strategy.preset",
          "strategy.data",
          "strategy.tensor",
          "strategy.pipeline",
          "strategy.context",
          "strategy.context_kind",
          "strategy.expert",
          "strategy.expert_tensor",
          "strategy.placement",
          "strategy.sequence_parallel",
          "strategy.schedule",
          "strategy.virtual_stages",
          "strategy.microbatch_group",
          "strategy.stage_layers",
          "strategy.stages_by",
          "strategy.batch_by",
          "strategy.moved_samples",
          "strategy.zero_stage",
          "strategy.fsdp",
          "strategy.shard_degree",
          "strategy.reshard_after_forward",
          "strategy.offload",
          "strategy.offload_parameters",
          "strategy.gradients",
          "strategy.all_reduce",
          "strategy.bucket_mb",
          "strategy.first_bucket_mb",
          "strategy.parameter_server",
          "training.micro_batch",
          "training.recompute",
          "training.recompute_layers"};
}

std::vector<std::pair<std::string, std::string>> settings_of(const PlanChoice& plan, const Model& model) {
  const CoreChoice& c = plan.core;
  const GradientChoice& g = plan.gradients;
  std::vector<std::pair<std::string, std::string>> settings;
  const auto set = [&](const char* key, std::string value) { settings.emplace_back(key, std::move(value)); };
  const auto number = [&](const char* key, auto value) { set(key, fmt::format("{}", value)); };
  number("training.micro_batch", c.micro_batch);
  set("training.recompute", quoted(kRecomputeNames, c.recompute));
  if (c.recompute_layers > 0) number("training.recompute_layers", c.recompute_layers);
  number("strategy.tensor", c.tensor);
  if (c.context > 1) {
    number("strategy.context", c.context);
    set("strategy.context_kind", quoted(kContextKindNames, c.context_kind));
  }
  number("strategy.pipeline", c.pipeline);
  number("strategy.data", c.data);
  if (c.expert > 1) number("strategy.expert", c.expert);
  if (c.expert_tensor > 0) number("strategy.expert_tensor", c.expert_tensor);
  if (c.tensor > 1) set("strategy.sequence_parallel", c.sequence_parallel ? "true" : "false");
  if (c.pipeline > 1) {
    set("strategy.schedule", quoted(kPipelineScheduleNames, c.schedule));
    number("strategy.virtual_stages", c.virtual_stages);
    const bool profiled = is_profiled(model);
    if (!profiled) set("strategy.stage_layers", fmt::format("[{}]", fmt::join(plan.stage_layers, ", ")));
  }
  if (g.pipeline_inside) {
    std::string order = R"("tensor")";
    if (c.context > 1) order += R"(, "context")";
    set("strategy.placement", fmt::format(R"([{}, "pipeline", "data"])", order));
  }
  switch (g.sharing) {
    case Sharing::nothing:
      break;
    case Sharing::optimizer:
    case Sharing::gradients:
    case Sharing::weights:
      number("strategy.zero_stage", static_cast<int>(g.sharing));
      return settings;
    case Sharing::weights_in_node:
      set("strategy.fsdp", quoted("hybrid"));
      return settings;
  }
  if (c.data * c.context == 1) return settings;
  if (g.servers > 0) {
    set("strategy.gradients", quoted("parameter-server"));
    number("strategy.parameter_server.servers", g.servers);
    set("strategy.parameter_server.placement", quoted("colocated"));
    return settings;
  }
  set("strategy.all_reduce", quoted(kAlgorithmNames, g.all_reduce));
  number("strategy.bucket_mb", g.bucket_mb);
  return settings;
}

std::string in_words(const PlanChoice& plan) {
  const CoreChoice& c = plan.core;
  const GradientChoice& g = plan.gradients;
  std::string words;
  const auto degree = [&](const char* name, int value) {
    if (value > 1) words += fmt::format("{}{} {}", words.empty() ? "" : " x ", name, value);
  };
  degree("data", c.data);
  degree("context", c.context);
  degree("tensor", c.tensor);
  degree("pipeline", c.pipeline);
  degree("expert", c.expert);
  if (words.empty()) words = "one device";
  if (c.context > 1 && c.context_kind != ContextKind::ring)
    words += fmt::format(" ({})", kContextKindNames[static_cast<std::size_t>(c.context_kind)]);
  if (c.pipeline > 1) {
    words += fmt::format(", {}", order_of(c.schedule).title);
    if (c.virtual_stages > 1) words += fmt::format(" with {} virtual stages", c.virtual_stages);
    if (c.cut == StageCut::by_number) words += ", equal stages";
    if (g.pipeline_inside) words += ", stages side by side";
  }
  words += fmt::format(", micro-batch {}", c.micro_batch);
  if (c.tensor > 1 && c.sequence_parallel) words += ", sequence parallel";
  if (c.recompute != Recompute::none) {
    words += fmt::format(", {} recomputation", kRecomputeNames[static_cast<std::size_t>(c.recompute)]);
    if (c.recompute_layers > 0)
      words +=
          fmt::format(" of {} {} a stage", c.recompute_layers, c.recompute_layers == 1 ? "layer" : "layers");
  }
  if (g.sharing != Sharing::nothing)
    words += fmt::format(", {}", kSharingNames[static_cast<std::size_t>(g.sharing)]);
  else if (g.servers > 0)
    words += fmt::format(", {} parameter server{}", g.servers, g.servers > 1 ? "s" : "");
  else if (c.data * c.context > 1)
    words += fmt::format(", {} all-reduce in buckets of {} MiB",
                         kAlgorithmNames[static_cast<std::size_t>(g.all_reduce)], g.bucket_mb);
  return words;
}

}  // namespace rehearse
