#include "simulator/strategies/orders/pipeline_order.hpp"

#include <algorithm>

namespace rehearse {

int warm_up_passes(PipelineSchedule schedule, int stages, int stage, int microbatches, int chunks) {
  const int behind = stages - stage - 1;
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return microbatches;
    case PipelineSchedule::interleaved:
      return std::min(2 * behind + (chunks - 1) * stages, microbatches * chunks);
    case PipelineSchedule::one_f_one_b:
      break;
  }
  return std::min(behind, microbatches);
}

std::vector<PassItem> pipeline_order(PipelineSchedule schedule, int stages, int stage, int microbatches,
                                     int chunks) {
  const int passes = microbatches * chunks;
  // The i-th pass of a direction. One chunk: micro-batch i.
  const auto item = [&](bool forward, int i) {
    if (chunks == 1) return PassItem{forward, i, 0};
    const int group = i / (stages * chunks), chunk = i / stages % chunks;
    return PassItem{forward, group * stages + i % stages, forward ? chunk : chunks - 1 - chunk};
  };
  std::vector<PassItem> order;
  order.reserve(2 * static_cast<std::size_t>(passes));
  const int ahead = warm_up_passes(schedule, stages, stage, microbatches, chunks);
  for (int i = 0; i < ahead; ++i) order.push_back(item(true, i));
  for (int i = ahead; i < passes; ++i) {
    order.push_back(item(true, i));
    order.push_back(item(false, i - ahead));
  }
  for (int i = passes - ahead; i < passes; ++i) order.push_back(item(false, i));
  return order;
}

}  // namespace rehearse
