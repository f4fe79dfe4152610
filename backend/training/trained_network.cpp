#include "backend/training/trained_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "backend/training/perceptron.hpp"
#include "backend/training/trainable_transformer.hpp"
#include "backend/training/transformer_network.hpp"
#include "backend/training/workload_parts.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/schedule_factors.hpp"

namespace rehearse {
namespace {

const MultiLayerPerceptron* perceptron_of(const Scenario& scenario) {
  return std::get_if<MultiLayerPerceptron>(&scenario.model.shape);
}

PerceptronOptions perceptron_options(const Scenario& scenario, NetworkPart part, long kept_steps) {
  PerceptronOptions options;
  options.held = std::move(part.held);
  options.shards = layer_shards(scenario, part.coordinates);
  options.micro_batch = std::lround(scenario.training.micro_batch);
  options.microbatches = scenario.microbatches;
  options.batch_samples = static_cast<double>(options.micro_batch * options.microbatches * part.summed);
  options.optimizer = optimizer_of(scenario);
  options.precision = scenario.training.precision;
  options.gradient_precision = scenario.training.gradient_precision;
  options.seed = scenario.run.seed;
  options.sum_microbatches = part.sum_microbatches;
  options.loss_elsewhere = part.loss_elsewhere;
  options.keeps_gradients = part.splits_backward;
  options.tells_loss = std::all_of(part.coordinates.begin(), part.coordinates.end(),
                                   [](int coordinate) { return coordinate == 0; });
  options.kept_steps = kept_steps;
  options.samples = part.samples ? part.samples : training_samples(scenario);
  return options;
}

double batch_bytes(const MultiLayerPerceptron& shape, const Scenario& scenario,
                   const std::vector<LayerRange>& held) {
  const auto samples = static_cast<std::size_t>(std::lround(scenario.training.micro_batch));
  std::size_t elements = 0;  // per micro-batch
  for (const LayerRange& range : held) {
    if (range.first == 0)
      elements += EqualArrays::stride(samples * static_cast<std::size_t>(std::lround(shape.widths.front())));
    if (range.last == static_cast<int>(shape.widths.size()) - 2) elements += 2 * EqualArrays::stride(samples);
  }
  return static_cast<double>(kElementBytes * elements) * scenario.microbatches;
}

std::size_t parameters_of(const MultiLayerPerceptron& shape, LayerRange layers,
                          const std::vector<LayerShard>& shards) {
  std::size_t sum = 0;
  for (auto i = static_cast<std::size_t>(layers.first); i <= static_cast<std::size_t>(layers.last); ++i)
    sum += static_cast<std::size_t>(shards.at(i).inputs.size(std::lround(shape.widths.at(i))) + 1) *
           static_cast<std::size_t>(shards.at(i).outputs.size(std::lround(shape.widths.at(i + 1))));
  return sum;
}

double transformer_batch_bytes(const Scenario& scenario, const std::vector<LayerRange>& held) {
  const auto samples = static_cast<std::size_t>(std::lround(scenario.training.micro_batch));
  const std::size_t tokens =
      EqualArrays::stride(samples * static_cast<std::size_t>(dim_sizes(scenario).sequence));
  const int last = std::get<Transformer>(scenario.model.shape).layers + 1;
  std::size_t elements = 0;  // per micro-batch
  for (const LayerRange& range : held)
    elements += tokens * ((range.first == 0 ? 1 : 0) + (range.last == last ? 2 : 0));
  if (has_dropout(std::get<Transformer>(scenario.model.shape))) elements += EqualArrays::stride(samples);
  return static_cast<double>(kElementBytes * elements) * scenario.microbatches;
}

// Calls `each` for the tensors of a transformer's layers on the rank at these coordinates, in memory order.
void for_each_tensor(const Scenario& scenario, LayerRange layers, const std::vector<int>& coordinates,
                     const std::function<void(const ParameterTensor&, const Shards&)>& each) {
  const std::vector<Layer> model = model_layers(scenario.model, pass_shape(scenario));
  const Shards shards(schedule_factors(scenario), coordinates);
  for (int layer = layers.first; layer <= layers.last; ++layer) {
    const bool copy = tied_apart(scenario) && layer + 1 == static_cast<int>(model.size());
    for (const ParameterTensor& tensor : layer_parameters(scenario, model, layer, shards, copy).tensors)
      each(tensor, shards);
  }
}

}  // namespace

Array TrainedNetwork::ring_message(int, int segment, int, const RingMessage&, bool) {
  throw RunError(fmt::format("segment {} is not ring attention", segment));
}

std::string why_no_network(const Scenario& scenario) {
  if (perceptron_of(scenario))
    return scenario.run.data.empty() || reads_folder(scenario)
               ? ""
               : "run.data is a file of tokens, and perceptrons train on folders of samples";
  if (!std::holds_alternative<Transformer>(scenario.model.shape))
    return fmt::format("{} is neither a multi-layer perceptron nor a transformer", scenario.model.title);
  return why_no_transformer(scenario);
}

std::unique_ptr<TrainedNetwork> make_network(const Scenario& scenario, NetworkPart part, long kept_steps,
                                             Arithmetic& arithmetic) {
  if (const MultiLayerPerceptron* shape = perceptron_of(scenario))
    return std::make_unique<Perceptron>(arithmetic, *shape,
                                        perceptron_options(scenario, std::move(part), kept_steps));
  return std::make_unique<TransformerNetwork>(scenario, schedule_factors(scenario), std::move(part),
                                              kept_steps, arithmetic);
}

double batch_bytes(const Scenario& scenario, const std::vector<LayerRange>& held) {
  if (const MultiLayerPerceptron* shape = perceptron_of(scenario)) return batch_bytes(*shape, scenario, held);
  return transformer_batch_bytes(scenario, held);
}

std::vector<float> initial_weights(const Scenario& scenario, LayerRange layers,
                                   const std::vector<int>& coordinates) {
  if (const MultiLayerPerceptron* shape = perceptron_of(scenario))
    return initial_weights(*shape, scenario.run.seed, layers, layer_shards(scenario, coordinates));
  std::vector<float> all;
  for_each_tensor(scenario, layers, coordinates, [&](const ParameterTensor& tensor, const Shards& shards) {
    const std::vector<float> more = initial_values(tensor, shards, scenario.run.seed);
    all.insert(all.end(), more.begin(), more.end());
  });
  return all;
}

std::size_t parameters_of(const Scenario& scenario, LayerRange layers, const std::vector<int>& coordinates) {
  if (const MultiLayerPerceptron* shape = perceptron_of(scenario))
    return parameters_of(*shape, layers, layer_shards(scenario, coordinates));
  std::size_t sum = 0;
  for_each_tensor(scenario, layers, coordinates,
                  [&](const ParameterTensor& tensor, const Shards&) { sum += tensor.local.elements(); });
  return sum;
}

}  // namespace rehearse
