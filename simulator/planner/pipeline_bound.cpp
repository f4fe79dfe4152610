#include "simulator/planner/pipeline_bound.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace rehearse {
namespace {

// Returns the time of a stage's passes for one micro-batch, or that of anything else that limits the stage.
// What it sends in one direction is sent sequentially.
double stage_s(const PipelineShape& shape, const std::vector<PartTimes>& parts, int stage) {
  const OrderEntry& entry = order_of(shape.schedule);
  double passes_s = 0, beside_s = 0, issue_s = 0, forwards_s = 0, backwards_s = 0;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const int number = part_of(entry.placement, shape.stages, stage, chunk);
    const PartTimes& part = parts[number];
    const auto goes_to_another = [&](int other) {
      return other >= 0 && other < static_cast<int>(parts.size()) &&
             stage_of_part(entry.placement, shape.stages, other) != stage;
    };
    if (goes_to_another(number + 1)) forwards_s += part.sent_s;
    if (goes_to_another(number - 1)) backwards_s += parts[number - 1].sent_s;
    passes_s +=
        entry.splits_backward
            ? part.forward_s + std::min(part.backward_s, part.backward_input_s + part.backward_weight_s)
            : part.passes_s();
    beside_s += part.beside_s;
    issue_s += part.issue_s;
  }
  // In a vee, each model chunk sends on its own streams.
  if (entry.placement == PartPlacement::vee) forwards_s = backwards_s = 0;
  return std::max({passes_s, beside_s, issue_s, forwards_s, backwards_s});
}

}  // namespace

double quick_bound_s(const PipelineShape& shape, const std::vector<PartTimes>& parts,
                     const std::vector<double>& more_s) {
  const OrderEntry& entry = order_of(shape.schedule);
  double before_s = 0, behind_s = 0, bound_s = 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const double own_s = shape.microbatches * stage_s(shape, parts, stage) +
                         (more_s.empty() ? 0 : more_s[static_cast<std::size_t>(stage)]);
    bound_s = std::max(bound_s, entry.staggered ? own_s : before_s + own_s + behind_s);
    // The stage's first part is the one that the pipeline enters first and leaves last.
    const PartTimes& part = parts[stage];
    before_s += part.forward_s + part.sent_s;
    if (!entry.splits_backward) behind_s += part.backward_s + part.sent_s;
  }
  return bound_s;
}

std::vector<StageSpan> walk_pipeline(const PipelineShape& asked, const std::vector<PartTimes>& parts,
                                     int limit) {
  PipelineShape shape = asked;
  const OrderEntry& entry = order_of(shape.schedule);
  if (limit > 0 && shape.microbatches > limit)
    shape.microbatches = std::max(limit / shape.stages, 1) * shape.stages;
  shape.microbatches = std::min(shape.microbatches, asked.microbatches);
  const int m = shape.microbatches, all = static_cast<int>(parts.size());
  std::vector<double> forward_end(static_cast<std::size_t>(all) * m, -1), backward_end = forward_end;
  const auto at = [&](int part, int microbatch) { return static_cast<std::size_t>(part) * m + microbatch; };

  struct Stage {
    std::vector<PassItem> items;
    std::size_t next = 0;
    double now_s = 0;
    double scattered_s = 0;      // when the stream of its sums is free
    std::vector<double> free_s;  // by model chunk: when its gradients may be written again
    bool began = false, backward = false, last = false;
  };
  std::vector<Stage> stages(static_cast<std::size_t>(shape.stages));
  std::vector<StageSpan> spans(stages.size());
  for (int s = 0; s < shape.stages; ++s) {
    stages[s].items = entry.order({shape.stages, s, m, shape.chunks, shape.pairs});
    stages[s].free_s.assign(static_cast<std::size_t>(shape.chunks), 0);
  }
  std::size_t left = 0;
  for (const Stage& stage : stages) left += stage.items.size();
  while (left > 0) {
    const std::size_t before = left;
    for (int s = 0; s < shape.stages; ++s) {
      Stage& stage = stages[s];
      for (; stage.next < stage.items.size(); ++stage.next, --left) {
        const PassItem& item = stage.items[stage.next];
        const int number = part_of(entry.placement, shape.stages, s, item.chunk);
        const PartTimes& part = parts[number];
        double ready_s = 0, seconds = 0;
        const auto wait_for = [&](double end_s, double sent_s) {
          if (end_s < 0) return false;
          ready_s = end_s + sent_s;
          return true;
        };
        const auto sent_s = [&](int from, int to) {
          return stage_of_part(entry.placement, shape.stages, from) ==
                         stage_of_part(entry.placement, shape.stages, to)
                     ? 0.0
                     : parts[std::min(from, to)].sent_s;
        };
        if (item.pass == Pass::forward) {
          if (number > 0 &&
              !wait_for(forward_end[at(number - 1, item.microbatch)], sent_s(number - 1, number)))
            break;
          seconds = part.forward_s;
        } else if (item.pass == Pass::backward_weight) {
          seconds = part.backward_weight_s;
        } else {
          if (number + 1 < all &&
              !wait_for(backward_end[at(number + 1, item.microbatch)], sent_s(number + 1, number)))
            break;
          if (number + 1 == all && !wait_for(forward_end[at(number, item.microbatch)], 0)) break;
          seconds = item.pass == Pass::backward ? part.backward_s : part.backward_input_s;
        }
        const double begin_s = std::max(stage.now_s, ready_s);
        double end_s = begin_s + seconds;
        const bool makes_gradients = item.pass == Pass::backward || item.pass == Pass::backward_weight;
        if (makes_gradients && part.scatter_s > 0) {
          double& free_s = stage.free_s[static_cast<std::size_t>(item.chunk)];
          end_s = std::max(end_s, free_s + seconds / part.buckets);
          stage.scattered_s = free_s =
              std::max(stage.scattered_s + part.scatter_s, end_s + part.scatter_s / part.buckets);
        }
        stage.now_s = end_s;
        if (item.pass == Pass::forward)
          forward_end[at(number, item.microbatch)] = end_s;
        else if (item.pass != Pass::backward_weight)
          backward_end[at(number, item.microbatch)] = end_s;
        if (!stage.began) spans[s].begin_s = begin_s;
        stage.began = true;
        if (item.pass != Pass::forward && !stage.backward) {
          spans[s].first_backward_s = begin_s;
          stage.backward = true;
        }
        if (makes_gradients && item.microbatch == m - 1 && !stage.last) {
          spans[s].last_gradients_s = begin_s;
          stage.last = true;
        }
        spans[s].end_s = end_s;
      }
    }
    if (left == before) throw std::logic_error("a pipeline's order has a cycle of waits");
  }
  if (m < asked.microbatches) {
    // The longest path may lead through any stage, so count the remaining micro-batches with the fastest one.
    double fastest_s = stage_s(shape, parts, 0);
    for (int s = 1; s < shape.stages; ++s) fastest_s = std::min(fastest_s, stage_s(shape, parts, s));
    const double more_s = (asked.microbatches - m) * fastest_s;
    for (StageSpan& span : spans) {
      span.end_s += more_s;
      span.last_gradients_s += more_s;
    }
  }
  return spans;
}

int most_in_flight(const PipelineShape& shape, int stage) {
  int now = 0, most = 0;
  for (const PassItem& item :
       order_of(shape.schedule).order({shape.stages, stage, shape.microbatches, shape.chunks, shape.pairs})) {
    if (item.pass == Pass::forward)
      most = std::max(most, ++now);
    else if (item.pass != Pass::backward_weight)
      --now;
  }
  return most;
}

}  // namespace rehearse
