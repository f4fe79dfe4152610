// Tensor parallelism as in Megatron-LM (Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter
// Language Models Using Model Parallelism", 2019): heads, the inner dimension of feed-forwards and the
// vocabulary are split, all ranks do everything else. With sequence parallelism (Korthikanti et al.,
// "Reducing Activation Recomputation in Large Transformer Models", 2022) the rest is split by tokens.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "models/text/document.hpp"
#include "simulator/strategies/axes/axis.hpp"

namespace rehearse {
namespace {

using enum SegmentKind;

AxisTable tensor_table(bool sequence_parallel) {
  AxisTable table(sequence_parallel ? by(Dim::sequence) : Split{});
  table.rows({embedding, logits, maximum, sums}, by(Dim::vocabulary))
      .rows({query, query_norm, key_value, key_norm, latent_up, attention, projection}, by(Dim::kv_heads))
      .rows({up, down, expert_up, expert_down}, by(Dim::inner))
      .rows({loss, pooler, block}, {Split::Kind::duplicate});
  // Each rank sends its experts' summands back in order of the tokens, where they are added up once.
  if (!sequence_parallel)
    table.rows({dispatch}, {Split::Kind::shared}).rows({combine}, {Split::Kind::through});
  return table;
}

// If there are more ranks than key-value heads, the ranks that share one split its queries.
AxisTable query_table(bool sequence_parallel) {
  return tensor_table(sequence_parallel)
      .rows({query, query_norm, attention, projection}, by(Dim::queries))
      .rows({key_value, key_norm, latent_up}, {Split::Kind::shared});
}

int key_value_heads(const Transformer& t) {
  return static_cast<int>(t.kv_heads > 0 ? t.kv_heads : t.heads);
}

std::vector<Factor> tensor_factors(const Scenario& scenario) {
  const int degree = scenario.strategy.tensor;
  const bool sequence = scenario.strategy.sequence_parallel;
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  const int heads = t ? std::gcd(degree, key_value_heads(*t)) : degree, queries = degree / heads;
  const bool scatters = scenario.strategy.scatter_gather;
  return {{"tensor", heads, queries, tensor_table(sequence), sequence, false, false, scatters},
          {"tensor", queries, 1, query_table(sequence), sequence, false, false, scatters}};
}

// Checks scatter_gather. A framework's preset can set it; plans that have no such transfers, or whose tokens
// are split anyway, ignore it.
void fit_scatter_gather(Section& strategy, const Scenario& scenario) {
  const StrategyChoice& choice = scenario.strategy;
  if (!choice.scatter_gather || choice.tensor == 1 || choice.pipeline == 1 || choice.sequence_parallel)
    return;
  const auto* t = std::get_if<Transformer>(&scenario.model.shape);
  if (!t)
    strategy.refuse_inapplicable("scatter_gather", "true with " + scenario.model.name,
                                 "false, or a transformer");
  const double tokens = tokens_per_sample(scenario.model, scenario.training.sequence_length);
  if (std::fmod(tokens, choice.tensor * choice.context) != 0)
    strategy.refuse("scatter_gather", fmt::format("true with sequences of {} tokens", tokens),
                    fmt::format("false, or a multiple of the tensor ranks, {}", choice.tensor));
}

void fit_tensor(Section& strategy, const Scenario& scenario) {
  const int degree = scenario.strategy.tensor;
  const bool sequence = scenario.strategy.sequence_parallel;
  fit_scatter_gather(strategy, scenario);
  if (degree == 1) {
    if (sequence)
      strategy.refuse_inapplicable("sequence_parallel", "true with tensor = 1",
                                   "only with a tensor degree of 2 or more");
    return;
  }
  const std::string found = fmt::format("{}", degree);
  const auto divides = [&](double size, const std::string& what) {
    if (size > 0 && std::fmod(size, degree) != 0)
      strategy.refuse("tensor", found, fmt::format("a divisor of {}, {}", size, what));
  };
  if (scenario.strategy.gradients == "first-device")
    strategy.refuse("tensor", found + " with gradients = \"first-device\"",
                    "1: every device has a replica of the entire model");
  if (const auto* t = std::get_if<Transformer>(&scenario.model.shape)) {
    divides(t->heads, "the heads of " + scenario.model.name);
    const int kv = key_value_heads(*t), apart = std::gcd(degree, kv);
    if (static_cast<int>(t->heads) / kv % (degree / apart) != 0)
      strategy.refuse(
          "tensor", found,
          fmt::format("a degree that shares out {} key-value heads of {} queries each", kv, t->heads / kv));
    divides(t->feed_forward > 0 ? t->feed_forward : 4 * t->hidden, "the feed-forward's inner width");
    divides(t->dense_feed_forward, "the inner width of the layers without experts");
    divides(t->shared_expert, "the inner width of the shared expert");
    if (sequence)
      divides(tokens_per_sample(scenario.model, scenario.training.sequence_length),
              "the tokens of a sequence (sequence_parallel)");
  } else if (const auto* p = std::get_if<MultiLayerPerceptron>(&scenario.model.shape)) {
    for (std::size_t i = 1; i + 1 < p->widths.size(); i += 2)
      if (i + 2 < p->widths.size()) divides(p->widths[i], fmt::format("the width of layer {}", i));
    divides(p->widths.back(), "the outputs of the perceptron");
    if (sequence) divides(scenario.training.micro_batch, "training.micro_batch (sequence_parallel)");
  } else {
    strategy.refuse("tensor", fmt::format("{} with {}", degree, scenario.model.name),
                    "1, or a transformer or a perceptron, whose products can be split");
  }
}

// Some keys are refused with a degree of one, so this also sets them.
Advice with_degrees(const StrategyChoice& now, const char* why, int tensor, int pipeline) {
  Advice advice{why,
                {fmt::format("strategy.tensor={}", tensor), fmt::format("strategy.pipeline={}", pipeline)}};
  if (tensor == 1 && now.sequence_parallel) advice.sets.emplace_back("strategy.sequence_parallel=false");
  return advice;
}

Advice less_tensor_communication(const Scenario& scenario, const LinkPlace& busiest) {
  const StrategyChoice& strategy = scenario.strategy;
  const int in_node = scenario.cluster->node().devices;
  if (crosses_network(busiest) && strategy.tensor > in_node && strategy.tensor % in_node == 0)
    return with_degrees(strategy, "inside a node it would not cross the network", in_node,
                        strategy.pipeline * strategy.tensor / in_node);
  if (strategy.tensor_overlap == TensorOverlap::none)
    return {"the gradients of weights can be computed meanwhile",
            {"strategy.tensor_overlap=weight-gradients"}};
  const std::size_t layers = model_layers(scenario.model, pass_shape(scenario)).size();
  const auto parts = static_cast<std::size_t>(2 * strategy.pipeline * strategy.virtual_stages);
  if (strategy.tensor % 2 != 0 || parts > layers || !strategy.stage_layers.empty()) return {};
  return with_degrees(strategy, "half the degree and twice the stages send about half of it",
                      strategy.tensor / 2, 2 * strategy.pipeline);
}

}  // namespace

extern const AxisEntry kTensorAxis{
    "tensor",
    "ranks that split each layer",
    Purpose::tensor,
    false,
    false,
    [](const StrategyChoice& choice) { return choice.tensor; },
    [](Section& strategy, StrategyChoice& choice) {
      choice.tensor = static_cast<int>(strategy.integer("tensor", 1, kMaxDegree, 1));
      choice.sequence_parallel = strategy.boolean("sequence_parallel", false);
      choice.tensor_overlap =
          static_cast<TensorOverlap>(strategy.choice("tensor_overlap", kTensorOverlapNames, 0));
      choice.tensor_chunks = static_cast<int>(strategy.integer("tensor_chunks", 2, 64, 4));
      choice.scatter_gather = strategy.boolean("scatter_gather", false);
    },
    fit_tensor,
    tensor_factors,
    [](const StrategyChoice& choice) {
      return fmt::format("tensor {}{}", choice.tensor,
                         choice.sequence_parallel ? " (sequence parallel)" : "");
    },
    less_tensor_communication,
};

}  // namespace rehearse
