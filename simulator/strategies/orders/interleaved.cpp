// Interleaved 1F1B over v model chunks per stage (Narayanan et al., SC 2021, figure 4; Megatron-LM's
// forward_backward_pipelining_with_interleaving): a group of g micro-batches, usually as many as there are
// stages, p, runs through chunk 0, then through chunk 1, ..., then the next group; backward passes run from
// the last chunk to the first. Stage s runs 2(p-s-1) + (v-1)g passes ahead; one more if passes take turns, so
// that the two passes belong to different micro-batches even on the last stage (get_schedule_table and
// get_pp_rank_microbatches in Megatron-LM's megatron/core/pipeline_parallel/schedules.py).
#include <algorithm>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

int passes_ahead(const StagePlace& place) {
  return std::min(
      2 * (place.stages - place.stage - 1) + (place.chunks - 1) * place.group_size() + (place.pairs ? 1 : 0),
      place.microbatches * place.chunks);
}

PassItem item(const StagePlace& place, Pass pass, int i) {
  if (place.chunks == 1) return {pass, i, 0};
  const int group = place.group_size(), first = i / (group * place.chunks) * group,
            size = std::min(group, place.microbatches - first), inside = i - first * place.chunks,
            chunk = inside / size;
  return {pass, first + inside % size, pass == Pass::forward ? chunk : place.chunks - 1 - chunk};
}

}  // namespace

extern const OrderEntry kInterleavedOrder{
    .title = "interleaved 1F1B",
    .summary = "pipeline: 1F1B with several parts of the model on every stage, for a smaller bubble",
    .more =
        "The layers are cut into pipeline x virtual_stages parts; part c x pipeline + s is chunk c of stage "
        "s. "
        "The\n"
        "bubble is divided by virtual_stages, but there are as many times more transfers and some more "
        "activations\n"
        "(Narayanan et al. 2021; Megatron-LM). Micro-batches run in groups of as many as there are stages,\n"
        "or of microbatch_group; the last group may then be smaller.",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"interleaved\"\n"
        "virtual_stages = 2          # parts of the model on each\n"
        "# microbatch_group = 12     # micro-batches that run through one part before the next (pipeline)\n",
    .fewest_stages = 2,
    .fewest_chunks = 2,
    .most_chunks = kMostChunks,
    .in_groups = true,
    .order =
        [](const StagePlace& place) {
          return alternating_order(
              place, passes_ahead(place),
              [](const StagePlace& at, int i) { return item(at, Pass::forward, i); },
              [](const StagePlace& at, int i) { return item(at, Pass::backward, i); });
        },
    .ahead = passes_ahead,
};

}  // namespace rehearse
