#include "simulator/strategies/most_ops.hpp"

#include <algorithm>

#include "models/segment.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "simulator/strategies/gradients/gradient_strategy.hpp"
#include "simulator/strategies/programs/stage_input.hpp"

namespace rehearse {

double most_ops_of(const Scenario& scenario) {
  // A micro-batch passes a part of the model up to four times: forward, recomputation, both halves of the
  // backward pass. Each pass is computed, received and sent.
  constexpr double kOpsOfPart = 4 * 3;
  // Around a segment, each pass has a piece of computation and a change of its input or output; sharded
  // weights are gathered before it, and gradients summed behind it.
  constexpr double kOpsOfSegment = 4 * 4;
  const StrategyChoice& strategy = scenario.strategy;
  double segments = 0, ring_steps = 1;
  for (const Layer& layer : model_layers(scenario.model, pass_shape(scenario))) {
    segments += static_cast<double>(std::max<std::size_t>(1, layer.segments.size()));
    for (const Segment& segment : layer.segments)
      ring_steps = std::max(ring_steps, static_cast<double>(segment.steps.size()));
  }
  const std::shared_ptr<const GradientStrategy> gradients = gradient_strategy(scenario);
  const bool in_pieces = strategy.tensor > 1 || strategy.context > 1 || strategy.expert > 1 ||
                         gradients->shared_state(scenario).has_value();
  const double parts = static_cast<double>(strategy.pipeline) * strategy.virtual_stages;
  const double pieces = std::max<double>(
      ring_steps, strategy.tensor_overlap == TensorOverlap::chunks ? strategy.tensor_chunks : 1);
  const double of_microbatch = kOpsOfPart * parts + (in_pieces ? kOpsOfSegment * segments * pieces : 0);
  // Gradients are summed and weights updated in buckets, of a segment each at the least; the last micro-batch
  // is cut at them.
  const double of_step = kOpsOfPart * parts + kOpsOfSegment * segments;
  return static_cast<double>(gradients->optimizer_steps()) *
         rounds_of_input(scenario, gradients->optimizer_steps()) *
         (of_microbatch * scenario.microbatches + of_step);
}

}  // namespace rehearse
