// 1F1B, or PipeDream-flush (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
// Using Megatron-LM", SC 2021): stage s of p runs p-s-1 forward passes ahead, then alternates one forward and
// one backward pass, so it never retains the activations of more than p-s micro-batches. Without a pipeline,
// passes that take turns belong to two micro-batches: one pass runs ahead (Megatron-LM's
// megatron/core/pipeline_parallel/combined_1f1b.py, combined_1f1b_schedule_for_no_pipelining).
#include <algorithm>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

int warm_up_passes(const StagePlace& place) {
  const int ahead = place.stages == 1 && place.pairs ? 1 : place.stages - place.stage - 1;
  return std::min(ahead, place.microbatches);
}

}  // namespace

extern const OrderEntry kOneFOneBOrder{
    .title = "1F1B",
    .summary = "pipeline: alternates forward and backward passes, to store fewer activations",
    .more =
        "The layers are cut into stages. After a warm-up each stage alternates one forward and one backward "
        "pass,\n"
        "and stores at most as many micro-batches as there are stages (Narayanan et al. 2019).",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"1f1b\"\n",
    .order =
        [](const StagePlace& place) {
          return alternating_order(
              place, warm_up_passes(place),
              [](const StagePlace&, int i) {
                return PassItem{Pass::forward, i, 0};
              },
              [](const StagePlace&, int i) {
                return PassItem{Pass::backward, i, 0};
              });
        },
    .ahead = warm_up_passes,
};

}  // namespace rehearse
