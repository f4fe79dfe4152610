// ZB-V (Qi et al., "Zero Bubble Pipeline Parallelism", section 6; "Pipeline Parallelism with Controllable
// Memory", arXiv 2405.15362): stage s of p holds the model's parts s and 2p - 1 - s, so the first stage holds
// both the first and the last part. A backward pass begins there once its micro-batch has run down all stages
// and back. No stage retains the activations of more than 2p passes of its chunks, as much memory as the
// first stage of 1F1B needs. There is no bubble if a forward pass and both halves of a backward pass take
// equally long. The order is the one that the paper draws for such times and at least 2p - 1 micro-batches;
// with fewer micro-batches, the passes of the missing ones are left out.
#include <algorithm>
#include <array>

#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

class VeeOrder {
public:
  explicit VeeOrder(const StagePlace& place) : place_(place) {}

  std::vector<PassItem> write() {
    const int p = place_.stages, s = place_.stage, planned = std::max(place_.microbatches, 2 * p - 1);
    // The pipeline fills: forward passes of chunk 0 until the first micro-batch comes back, then forward
    // passes of both chunks in turn, then forward and backward passes of chunk 1.
    for (int i = 0; i < 2 * (p - s) - 1; ++i) forward(0);
    for (int i = 0; i < s; ++i) {
      forward(1);
      forward(0);
    }
    for (int i = 0; i < p - s; ++i) {
      forward(1);
      backward(1);
    }
    while (next_forward_[1] < planned) {
      if (next_forward_[0] < planned) forward(0);
      backward(0);
      forward(1);
      backward(1);
    }
    // The pipeline drains: input parts run first, because other stages wait for them.
    for (int i = 0; i < s; ++i) {
      add(Pass::backward_input, next_input_[0]++, 0);
      add(Pass::backward_input, next_input_[1]++, 1);
    }
    for (int i = 0; i < p - s; ++i) {
      add(Pass::backward_input, next_input_[0]++, 0);
      add(Pass::backward_weight, next_weight_[0]++, 0);
    }
    for (const int chunk : {1, 0})
      while (next_weight_[chunk] < planned) add(Pass::backward_weight, next_weight_[chunk]++, chunk);
    return std::move(order_);
  }

private:
  void add(Pass pass, int microbatch, int chunk) {
    if (microbatch < place_.microbatches) order_.push_back({pass, microbatch, chunk});
  }
  void forward(int chunk) { add(Pass::forward, next_forward_[chunk]++, chunk); }
  void backward(int chunk) {
    add(Pass::backward_input, next_input_[chunk]++, chunk);
    add(Pass::backward_weight, next_weight_[chunk]++, chunk);
  }

  const StagePlace& place_;
  std::array<int, 2> next_forward_{}, next_input_{}, next_weight_{};  // next micro-batches, by chunk
  std::vector<PassItem> order_;
};

}  // namespace

extern const OrderEntry kZeroBubbleVOrder{
    .title = "ZB-V",
    .summary = "pipeline: split backward passes and no bubble, with the activations of 1F1B",
    .more =
        "The model is cut into 2 x pipeline parts, placed in a V: stage s of p holds parts s and 2p - 1 - s. "
        "There\n"
        "is no bubble if the three kinds of passes take the same time, and no stage stores the activations "
        "of "
        "more\n"
        "than `pipeline` micro-batches (Qi et al. 2023, section 6).",
    .keys =
        "pipeline = 8                # stages\n"
        "schedule = \"zb-v\"\n",
    .placement = PartPlacement::vee,
    .fewest_stages = 2,
    .fewest_chunks = 2,
    .most_chunks = 2,
    .splits_backward = true,
    .staggered = true,
    .order = [](const StagePlace& place) { return VeeOrder(place).write(); },
};

}  // namespace rehearse
