// Breadth-first (Lamy-Poirier, "Breadth-First Pipeline Parallelism", MLSys 2023): parts are placed as in
// interleaved 1F1B, and all micro-batches run through a model chunk before the first one enters the next;
// backward passes run from the last chunk to the first. The bubble is that of interleaved 1F1B, a chunk's
// gradients are complete early, and every stage retains the activations of all micro-batches.
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

extern const OrderEntry kBreadthFirstOrder{
    .title = "breadth-first",
    .summary = "pipeline: all micro-batches through one part of the model, then through the next",
    .more =
        "Parts are placed as in the interleaved schedule, and all micro-batches run through one part before "
        "the\n"
        "first enters the next. The bubble is divided by virtual_stages, gradients are complete part by "
        "part, "
        "and\n"
        "every stage stores the activations of all micro-batches (Lamy-Poirier 2023).",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"breadth-first\"\n"
        "virtual_stages = 2          # parts of the model on each\n",
    .fewest_stages = 2,
    .fewest_chunks = 2,
    .most_chunks = kMostChunks,
    .retains_all = true,
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
