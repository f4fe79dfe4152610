// DualPipeV (DeepSeek-AI, github.com/deepseek-ai/DualPipe; "cut in half" by Qi et al.): DualPipe of
// DeepSeek-V3 (arXiv 2412.19437, section 3.2.1) runs a pipeline in both directions, so that its stages s and
// 2p - 1 - s do the same work and hold the same two parts of the model. In DualPipeV, one stage does this
// work, and no part is held twice: parts run down the stages and back up as in ZB-V. Forward passes of one
// part alternate with complete backward passes of the other; backward passes are split only where the
// pipeline fills and drains. No stage retains more than 2p + 1 activations of its parts.
//
// The order is that of the published code for at least 2p micro-batches; with fewer, the passes of the
// missing ones are left out. The published code runs a forward and a backward pass at the same time, so that
// each computes while the other communicates; here this happens only if strategy.overlap_passes is set.
// Otherwise they run one after the other.
//
// DualPipe itself is the same with both halves of the pipeline: its stages s and 2p - 1 - s are two
// data-parallel ranks here.
#include <algorithm>
#include <array>
#include <deque>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

class DualOrder {
public:
  explicit DualOrder(const StagePlace& place) : place_(place) {}

  std::vector<PassItem> write() {
    const int p = place_.stages, s = place_.stage, behind = p - 1 - s;
    const int planned = std::max(place_.microbatches, 2 * p);
    // The pipeline fills: forward passes of chunk 0, then of both chunks, then with the first backward
    // passes.
    for (int i = 0; i < 2 * behind; ++i) forward(0);
    for (int i = 0; i <= s; ++i) {
      forward(0);
      forward(1);
    }
    for (int i = 0; i < behind; ++i) {
      backward_input(1);
      weight();
      forward(1);
    }
    for (int i = 0; i < planned - 2 * p + s + 1; ++i) {
      forward(0);
      backward(1);
      forward(1);
      backward(0);
    }
    // The pipeline drains; from the middle of the last backward passes on, weight parts are delayed.
    for (int i = 0; i < behind; ++i) {
      backward(1);
      forward(1);
      backward(0);
    }
    const int half = (s + 1) / 2;
    for (int i = 0; i <= s; ++i)
      for (const int chunk : {1, 0}) {
        const bool split = i > half || (i == half && (s % 2 == 1 || chunk == 0));
        split ? backward_input(chunk) : backward(chunk);
      }
    for (int i = 0; i < behind; ++i) {
      weight();
      backward_input(0);
    }
    while (!waiting_.empty()) weight();
    return std::move(order_);
  }

private:
  bool add(Pass pass, int microbatch, int chunk) {
    if (microbatch >= place_.microbatches) return false;
    order_.push_back({pass, microbatch, chunk});
    return true;
  }
  void forward(int chunk) { add(Pass::forward, next_forward_[chunk]++, chunk); }
  void backward(int chunk) { add(Pass::backward, next_backward_[chunk]++, chunk); }
  void backward_input(int chunk) {
    if (add(Pass::backward_input, next_backward_[chunk]++, chunk)) waiting_.push_back(order_.back());
  }
  void weight() {
    if (waiting_.empty()) return;
    add(Pass::backward_weight, waiting_.front().microbatch, waiting_.front().chunk);
    waiting_.pop_front();
  }

  const StagePlace& place_;
  std::array<int, 2> next_forward_{}, next_backward_{};  // next micro-batches, by chunk
  std::deque<PassItem> waiting_;                         // input parts whose weight parts have not run yet
  std::vector<PassItem> order_;
};

}  // namespace

namespace {

// Returns what both schedules share: all but their titles and texts.
constexpr OrderEntry dualpipe(bool mirrored) {
  return {
      .placement = PartPlacement::vee,
      .fewest_stages = 2,
      .fewest_chunks = 2,
      .most_chunks = 2,
      .splits_backward = true,
      .mirrored = mirrored,
      .staggered = true,
      .order = [](const StagePlace& place) { return DualOrder(place).write(); },
      .ahead = nullptr,
  };
}

}  // namespace

extern const OrderEntry kDualPipeVOrder = [] {
  OrderEntry entry = dualpipe(false);
  entry.title = "DualPipeV";
  entry.summary = "pipeline: alternates forward and full backward passes, over parts placed in a V";
  entry.more =
      "DeepSeek's DualPipe cut in half, so that no part is held twice: stage s of p holds parts s and\n"
      "2p - 1 - s. Backward passes are split only where the pipeline fills and drains.";
  entry.keys =
      "pipeline = 8                # stages\n"
      "schedule = \"dualpipe-v\"\n"
      "overlap_passes = true       # a forward and a backward pass at the same time\n";
  return entry;
}();
extern const OrderEntry kDualPipeOrder = [] {
  OrderEntry entry = dualpipe(true);
  entry.title = "DualPipe";
  entry.summary = "pipeline: DeepSeek's DualPipe, whose micro-batches enter at both ends";
  entry.more =
      "Stages s and p - 1 - s of p hold the same layers and do the same work, one for each direction, like\n"
      "dualpipe-v of p / 2 stages with twice the data-parallel ranks.";
  entry.keys =
      "pipeline = 16               # stages\n"
      "schedule = \"dualpipe\"\n"
      "overlap_passes = true       # a forward and a backward pass at the same time\n";
  return entry;
}();

}  // namespace rehearse
