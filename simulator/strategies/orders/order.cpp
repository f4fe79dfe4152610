#include "simulator/strategies/orders/order.hpp"

#include <array>

namespace rehearse {

#define PIPELINE_SCHEDULE(schedule, name, entry) extern const OrderEntry entry;
#include "simulator/scenario/pipeline_schedules.inc"
#undef PIPELINE_SCHEDULE

const OrderEntry& order_of(PipelineSchedule schedule) {
  static constexpr std::array kOrders = {
#define PIPELINE_SCHEDULE(schedule, name, entry) &(entry),
#include "simulator/scenario/pipeline_schedules.inc"
#undef PIPELINE_SCHEDULE
  };
  return *kOrders[static_cast<std::size_t>(schedule)];
}

bool grows_steadily(const StrategyChoice& strategy) {
  return strategy.virtual_stages == 1 || !order_of(strategy.schedule).retains_all;
}

std::vector<PassItem> alternating_order(const StagePlace& place, int ahead, ItemAt forward, ItemAt backward) {
  const int passes = place.microbatches * place.chunks;
  std::vector<PassItem> order;
  order.reserve(2 * static_cast<std::size_t>(passes));
  for (int i = 0; i < ahead; ++i) order.push_back(forward(place, i));
  for (int i = ahead; i < passes; ++i) {
    order.push_back(forward(place, i));
    order.push_back(backward(place, i - ahead));
  }
  for (int i = passes - ahead; i < passes; ++i) order.push_back(backward(place, i));
  return order;
}

bool fits_groups(const OrderEntry& order, const StagePlace& place) {
  if (!order.in_groups) return true;
  const int group = place.group_size(), rest = place.microbatches % group;
  return rest == 0 || (place.microbatches > group && rest >= place.stages);
}

std::vector<PassItem> pipeline_order(PipelineSchedule schedule, const StagePlace& place) {
  return order_of(schedule).order(place);
}

int part_of(PartPlacement placement, int stages, int stage, int chunk) {
  const bool back = placement == PartPlacement::vee && chunk % 2 == 1;
  return chunk * stages + (back ? stages - 1 - stage : stage);
}

int stage_of_part(PartPlacement placement, int stages, int part) {
  const bool back = placement == PartPlacement::vee && part / stages % 2 == 1;
  return back ? stages - 1 - part % stages : part % stages;
}

}  // namespace rehearse
