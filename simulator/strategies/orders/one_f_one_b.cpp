// 1F1B, or PipeDream-flush (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
// Using Megatron-LM", SC 2021): stage s of p runs p-s-1 forward passes ahead, then one forward and one
// backward in turn, so that it never keeps more than p-s micro-batches.
#include <algorithm>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

extern const OrderEntry kOneFOneBOrder{
    PipelineSchedule::one_f_one_b,
    [](const StagePlace& place) { return std::min(place.stages - place.stage - 1, place.microbatches); },
    [](const StagePlace&, bool forward, int i) {
      return PassItem{forward, i, 0};
    },
};

}  // namespace rehearse
