// Copies gradients to host memory and weights from where they are stored off the device, between the passes
// of a stage whose optimizer state is offloaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/strategies/gradients/offload.hpp"
#include "simulator/strategies/orders/order.hpp"
#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Both arguments must outlive this object. `zero`: the ZeRO stage. From stage 2 on, the sum of the gradients
// is stored in host memory; at stage 1, a copy of it is.
class HostCopies {
public:
  HostCopies(StepPlan& plan, StageProgram& stage, int zero);

  // Returns the bytes of a rank's shard of a bucket's gradients.
  double shard_bytes(std::size_t bucket) const;
  // A backward pass waits for the copy of the gradients of the pass before the last: there are two buffers.
  int copied_before() const { return copies_.size() < 2 ? -1 : copies_[copies_.size() - 2]; }
  // Stages 2 and 3 add a micro-batch's gradients to the sum in host memory on the device, as DeepSpeed does
  // (stage_1_and_2.py, async_accumulate_grad_in_cpu_via_gpu; stage3.py, partition_grads): the sum so far is
  // copied back after op `complete`. The addition itself is not counted. Returns -1 if there is no sum yet.
  int fetch_sum(const PassItem& item, std::size_t bucket, int complete);
  // `sum`: the tensor that holds the gradients on the device; `of_pass`: the one to which the pass wrote
  // them. A tied embedding's gradients wait for those of the other stage.
  void copy_gradients(const PassItem& item, std::size_t bucket, int sum, int of_pass,
                      const std::vector<Dependency>& after);
  // Copies the gradients that are not yet in host memory after the passes: at stage 1 all of them, else those
  // of a tied embedding. `tied`: the op that has summed the latter; -1: none.
  void copy_remaining(int tied);
  // Writes the update and returns the index of a device op that waits for all of it. Sets `updated`, by
  // bucket, to the op after which its weights are up to date.
  int update(std::vector<int>& updated);

  // The first and the last op of fetch_weights(), which copies a rank's shard of a bucket's weights to the
  // device from where it is stored, after op `behind` (-1: immediately).
  struct Fetched {
    int first = -1, last = -1;
  };
  Fetched fetch_weights(const PassItem& item, std::size_t bucket, int behind, std::vector<int> writes);

private:
  // Returns a copy of the sum of a bucket's gradients, of the size of a rank's shard.
  Op gradient_copy(std::string name, std::size_t bucket, HostAction action);

  StepPlan& plan_;
  StageProgram& stage_;
  const OffloadChoice& offload_;
  const int zero_;
  const bool overlaps_;
  // By bucket: the sum of its gradients in host memory, the op that last copied it there, and the buffer to
  // which it was copied back.
  std::vector<int> host_gradients_, last_copy_, fetched_;
  std::vector<int> copies_;  // copies of gradients to host memory, in order
  std::optional<Op> tied_copy_;
  int tied_sum_ = -1;
};

}  // namespace rehearse
