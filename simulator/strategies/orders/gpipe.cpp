// GPipe: all forward passes, then all backward passes (Huang et al., "GPipe: Efficient Training of Giant
// Neural Networks using Pipeline Parallelism", NeurIPS 2019).
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

int all_ahead(const StagePlace& place) {
  return place.microbatches;
}

}  // namespace

extern const OrderEntry kGPipeOrder{
    .title = "GPipe",
    .summary = "pipeline: all micro-batches forward, then all backward",
    .more =
        "The layers are cut into stages. Every stage stores the activations of all micro-batches (Huang et "
        "al. "
        "2019).",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"gpipe\"\n",
    .retains_all = true,
    .order =
        [](const StagePlace& place) {
          return alternating_order(
              place, all_ahead(place),
              [](const StagePlace&, int i) {
                return PassItem{Pass::forward, i, 0};
              },
              [](const StagePlace&, int i) {
                return PassItem{Pass::backward, i, 0};
              });
        },
    .ahead = all_ahead,
};

}  // namespace rehearse
