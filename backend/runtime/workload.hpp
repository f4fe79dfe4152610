// Declares what a rank computes and where the bytes of its messages are, for processors and for GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/runtime/hardware.hpp"
#include "backend/runtime/wiring.hpp"
#include "models/precision.hpp"
#include "simulator/schedule/collective.hpp"

namespace rehearse {

// The bytes of a message in the device's memory. Both ends specify the same size.
struct Payload {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Precision type = Precision::fp32;  // of the numbers that a collective combines
  Collective::Reduction reduction = Collective::Reduction::sum;
};

class TrainState;  // backend/training/state_slice.hpp

class Workload {
public:
  virtual ~Workload() = default;
  // Does the op's work on the host, before the op's time begins: provides the data of its step, or reads
  // results, for which `settle` waits until everything that was issued to the op's stream has ended.
  virtual void prepare(const OpCall& call, const std::function<void()>& settle) { (void)call, (void)settle; }
  // Issues the op's computation to its stream.
  virtual void compute(const OpCall& call) = 0;
  // Called as the op begins. The bytes stay at this address until the op runs again.
  virtual Payload message(const OpCall& call, const ExchangePart& part) = 0;
  // Returns the buffer of a collective, with room for the elements of its message table.
  virtual Payload collective(const OpCall& call, const CollectiveWiring& wiring) = 0;
  // Called when the collective has been issued; may issue work on its result to the op's stream.
  virtual void after_collective(const OpCall& call) { (void)call; }

  // The results of a run besides its times. learned() is called once, when all streams have ended.
  struct Learned {
    // For each step, this rank's part of the sum of its samples' losses; empty if no loss is computed.
    std::vector<double> losses;
    // For each step, a hash of the gradients that the optimizer got or, if the ranks have no gradients in
    // common, of the weights with which they were computed; empty if neither exists.
    std::vector<std::uint64_t> gradients;
    std::uint64_t weights = 0;     // hash of the final weights; 0: they are not final, or there are none
    std::uint64_t replicated = 0;  // hash of those that all ranks which share these layers hold in full
    std::vector<int> staleness;    // of each push to an asynchronous server's last bucket
  };
  virtual Learned learned() = 0;
  // Returns whether the workload reports losses. If so, it calls `on_loss`, if that is set, with each loss as
  // soon as it is known.
  virtual bool tells_losses() const { return false; }
  virtual TrainState* state() { return nullptr; }  // what it trains; null: nothing
  // Executes an op that loads a batch or copies it to the device.
  virtual void input(const OpCall& call);  // throws RunError if it has no batches
  // Makes input() end with an error, in all threads, because another stream has failed.
  virtual void stop_input() {}
  std::function<void(double)> on_loss;
};

}  // namespace rehearse
