// Interleaved 1F1B over v chunks a stage (Narayanan et al., SC 2021, figure 4; Megatron-LM's
// forward_backward_pipelining_with_interleaving): p micro-batches run through chunk 0, then through chunk 1,
// ..., then the next p; backward from the last chunk to the first. Stage s runs 2(p-s-1) + (v-1)p passes
// ahead.
#include <algorithm>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {

extern const OrderEntry kInterleavedOrder{
    PipelineSchedule::interleaved,
    [](const StagePlace& place) {
      return std::min(2 * (place.stages - place.stage - 1) + (place.chunks - 1) * place.stages,
                      place.microbatches * place.chunks);
    },
    [](const StagePlace& place, bool forward, int i) {
      if (place.chunks == 1) return PassItem{forward, i, 0};
      const int group = i / (place.stages * place.chunks), chunk = i / place.stages % place.chunks;
      return PassItem{forward, group * place.stages + i % place.stages,
                      forward ? chunk : place.chunks - 1 - chunk};
    },
};

}  // namespace rehearse
