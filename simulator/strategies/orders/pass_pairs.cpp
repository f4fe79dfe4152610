#include "simulator/strategies/orders/pass_pairs.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// Executes the orders of all stages, item by item, without any times.
class Pipeline {
public:
  Pipeline(PipelineSchedule schedule, StagePlace place)
      : placement_(order_of(schedule).placement), stages_(place.stages), parts_(place.stages * place.chunks) {
    place.pairs = true;
    for (place.stage = 0; place.stage < stages_; ++place.stage) {
      orders_.push_back(pipeline_order(schedule, place));
      pairs_.emplace_back(orders_.back().size(), false);
    }
    next_.assign(static_cast<std::size_t>(stages_), 0);
    const auto passes = static_cast<std::size_t>(parts_) * static_cast<std::size_t>(place.microbatches);
    forward_.assign(passes, false);
    backward_.assign(passes, false);
    microbatches_ = place.microbatches;
  }

  std::vector<std::vector<bool>> pairs() {
    for (;;) {
      bool moved = false;
      for (int s = 0; s < stages_; ++s)
        while (advance(s, true)) moved = true;
      if (moved) continue;
      // All stages wait for a second pass: one stage begins its first pass without it.
      for (int s = 0; s < stages_ && !moved; ++s) moved = advance(s, false);
      if (!moved) return std::move(pairs_);
    }
  }

private:
  std::size_t number(int part, int microbatch) const {
    return static_cast<std::size_t>(part) * static_cast<std::size_t>(microbatches_) +
           static_cast<std::size_t>(microbatch);
  }
  int part(int stage, const PassItem& item) const { return part_of(placement_, stages_, stage, item.chunk); }

  bool ready(int stage, const PassItem& item) const {
    const int p = part(stage, item);
    if (item.forward()) return p == 0 || forward_[number(p - 1, item.microbatch)];
    if (item.pass == Pass::backward_weight) return true;  // it always follows its other half
    return forward_[number(p, item.microbatch)] &&
           (p == parts_ - 1 || backward_[number(p + 1, item.microbatch)]);
  }

  void finish(int stage, const PassItem& item) {
    if (item.pass == Pass::backward_weight) return;
    (item.forward() ? forward_ : backward_)[number(part(stage, item), item.microbatch)] = true;
  }

  bool advance(int stage, bool in_pairs) {
    const std::vector<PassItem>& order = orders_[static_cast<std::size_t>(stage)];
    std::size_t& next = next_[static_cast<std::size_t>(stage)];
    if (next == order.size() || !ready(stage, order[next])) return false;
    const bool paired =
        in_pairs && next + 1 < order.size() && order[next].forward() &&
        (order[next + 1].pass == Pass::backward || order[next + 1].pass == Pass::backward_input) &&
        order[next].microbatch != order[next + 1].microbatch;
    if (paired && !ready(stage, order[next + 1])) return false;
    if (paired) pairs_[static_cast<std::size_t>(stage)][next] = true;
    for (int i = 0; i < (paired ? 2 : 1); ++i) finish(stage, order[next++]);
    return true;
  }

  PartPlacement placement_;
  int stages_, parts_, microbatches_ = 0;
  std::vector<std::vector<PassItem>> orders_;
  std::vector<std::size_t> next_;         // by stage
  std::vector<char> forward_, backward_;  // passes that are over, by part and micro-batch
  std::vector<std::vector<bool>> pairs_;
};

}  // namespace

std::vector<std::vector<bool>> pass_pairs(PipelineSchedule schedule, const StagePlace& place) {
  return Pipeline(schedule, place).pairs();
}

}  // namespace rehearse
