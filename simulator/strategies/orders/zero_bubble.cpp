// ZB-H1 and ZB-H2 as drawn by hand in figures 2 and 3 of Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR
// 2024, arXiv 2401.10241): 1F1B whose backward passes are split, so that weight parts, which no other pass
// waits for, fill the bubble. Stage s of p runs its forward passes ahead as in 1F1B, or twice as many, and
// its weight parts s, or 2s, micro-batches after their input parts: all stages then retain the activations of
// p, or 2p - 1, micro-batches (table 1). With F, B and W the times of a forward pass and the two halves of a
// backward pass, and W no longer than F and B, the bubble is (p - 1)(F + B - W), or (p - 1)(F + B - 2W) and
// none if that is negative.
//
// These orders do not depend on the times. The paper also searches for orders that suit the times of a model
// (ZB-1p and ZB-2p); this search is not implemented here.
#include <algorithm>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

// Returns 1F1B that runs `ahead` passes ahead, with weight parts `delay` micro-batches after the input parts.
std::vector<PassItem> delayed_weights(const StagePlace& place, int ahead, int delay) {
  std::vector<PassItem> order;
  order.reserve(3 * static_cast<std::size_t>(place.microbatches));
  int forward = 0, weight = 0;
  while (forward < std::min(ahead, place.microbatches)) order.push_back({Pass::forward, forward++, 0});
  for (int backward = 0; backward < place.microbatches; ++backward) {
    if (forward < place.microbatches) order.push_back({Pass::forward, forward++, 0});
    order.push_back({Pass::backward_input, backward, 0});
    if (backward >= delay) order.push_back({Pass::backward_weight, weight++, 0});
  }
  while (weight < place.microbatches) order.push_back({Pass::backward_weight, weight++, 0});
  return order;
}

}  // namespace

extern const OrderEntry kZeroBubbleH1Order{
    .title = "ZB-H1",
    .summary = "pipeline: 1F1B with split backward passes, for a third of its bubble",
    .more =
        "A backward pass is split into its input part, for which the previous stage waits, and its weight "
        "part, "
        "for\n"
        "which no stage waits and which fills the bubble. No stage stores the activations of more than "
        "`pipeline`\n"
        "micro-batches, as many as the first stage of 1F1B (Qi et al. 2023, figure 2).",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"zb-h1\"\n",
    .fewest_stages = 2,
    .splits_backward = true,
    .order =
        [](const StagePlace& place) {
          return delayed_weights(place, place.stages - place.stage - 1, place.stage);
        },
};

extern const OrderEntry kZeroBubbleH2Order{
    .title = "ZB-H2",
    .summary = "pipeline: split backward passes and no bubble, for twice the activations",
    .more =
        "Like zb-h1, with twice as many forward passes ahead: stages store the activations of 2 x pipeline - "
        "1\n"
        "micro-batches. There is no bubble if the three kinds of passes take the same time; each stage "
        "begins "
        "the\n"
        "next step as soon as it has ended one (Qi et al. 2023, figure 3).",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"zb-h2\"\n",
    .fewest_stages = 2,
    .splits_backward = true,
    .staggered = true,
    .order =
        [](const StagePlace& place) {
          return delayed_weights(place, 2 * (place.stages - place.stage - 1), 2 * place.stage);
        },
};

}  // namespace rehearse
