#include "simulator/strategies/orders/order.hpp"

#include <array>

namespace rehearse {

extern const OrderEntry kGPipeOrder, kOneFOneBOrder, kInterleavedOrder;

const OrderEntry& order_of(PipelineSchedule schedule) {
  static constexpr std::array kOrders = {&kGPipeOrder, &kOneFOneBOrder, &kInterleavedOrder};
  for (const OrderEntry* order : kOrders)
    if (order->schedule == schedule) return *order;
  return kOneFOneBOrder;
}

int warm_up_passes(PipelineSchedule schedule, int stages, int stage, int microbatches, int chunks) {
  return order_of(schedule).ahead({stages, stage, microbatches, chunks});
}

std::vector<PassItem> pipeline_order(PipelineSchedule schedule, int stages, int stage, int microbatches,
                                     int chunks) {
  const StagePlace place{stages, stage, microbatches, chunks};
  const OrderEntry& entry = order_of(schedule);
  const int passes = microbatches * chunks, ahead = entry.ahead(place);
  std::vector<PassItem> order;
  order.reserve(2 * static_cast<std::size_t>(passes));
  for (int i = 0; i < ahead; ++i) order.push_back(entry.item(place, true, i));
  for (int i = ahead; i < passes; ++i) {
    order.push_back(entry.item(place, true, i));
    order.push_back(entry.item(place, false, i - ahead));
  }
  for (int i = passes - ahead; i < passes; ++i) order.push_back(entry.item(place, false, i));
  return order;
}

}  // namespace rehearse
