// Breadth-first (Lamy-Poirier, "Breadth-First Pipeline Parallelism", MLSys 2023): parts are placed as in
// interleaved 1F1B, and all micro-batches run through a model chunk before the first one enters the next;
// backward passes run from the last chunk to the first. The bubble is that of interleaved 1F1B, a chunk's
// gradients are complete early, and every stage retains the activations of all micro-batches.
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

extern const OrderEntry kBreadthFirstOrder{
    .schedule = PipelineSchedule::breadth_first,
    .title = "breadth-first",
    .fewest_stages = 2,
    .fewest_chunks = 2,
    .most_chunks = kMostChunks,
    .order =
        [](const StagePlace& place) {
          std::vector<PassItem> order;
          for (int c = 0; c < place.chunks; ++c)
            for (int k = 0; k < place.microbatches; ++k) order.push_back({Pass::forward, k, c});
          for (int c = place.chunks - 1; c >= 0; --c)
            for (int k = 0; k < place.microbatches; ++k) order.push_back({Pass::backward, k, c});
          return order;
        },
};

}  // namespace rehearse
