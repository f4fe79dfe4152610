// GPipe: all forward passes, then all backward passes (Huang et al., "GPipe: Efficient Training of Giant
// Neural Networks using Pipeline Parallelism", NeurIPS 2019).
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

extern const OrderEntry kGPipeOrder{
    PipelineSchedule::gpipe,
    [](const StagePlace& place) { return place.microbatches; },
    [](const StagePlace&, bool forward, int i) {
      return PassItem{forward, i, 0};
    },
};

}  // namespace rehearse
