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
    .schedule = PipelineSchedule::gpipe,
    .title = "GPipe",
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
