// What a rank computes, and where the bytes of its messages stand: on processors and on GPUs alike.
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

// A message's bytes in the device's memory. Both ends give it the same size.
struct Payload {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Precision type = Precision::fp32;  // of the numbers that a collective combines
  Collective::Reduction reduction = Collective::Reduction::sum;
};

class Workload {
public:
  virtual ~Workload() = default;
  // What an op needs of the host: data of its step, or a look at results, for which `settle` waits until all
  // that was issued to the op's stream has ended. Called before the op's time begins.
  virtual void prepare(const OpCall& call, const std::function<void()>& settle) { (void)call, (void)settle; }
  // Issues the op's computation to its stream.
  virtual void compute(const OpCall& call) = 0;
  // Called as the op begins; the bytes stay where they are until the op is run again.
  virtual Payload message(const OpCall& call, const ExchangePart& part) = 0;
  // The buffer of a collective, with room for the table's elements.
  virtual Payload collective(const OpCall& call, const CollectiveWiring& wiring) = 0;
  // Called when the collective has been issued: may issue to the op's stream what becomes of its result.
  virtual void after_collective(const OpCall& call) { (void)call; }

  // What came of it besides time; called once, when all streams have ended.
  struct Learned {
    // Of each step, this rank's part of the sum of its samples' losses; empty where no loss is computed.
    std::vector<double> losses;
    // Of each step, a hash of the gradients that the optimizer got, or where ranks have no gradients in
    // common, of the weights that it was computed with; empty where neither is.
    std::vector<std::uint64_t> gradients;
    std::uint64_t weights = 0;     // a hash of the weights in the end
    std::uint64_t replicated = 0;  // and of those that all ranks which share these layers have whole
    std::vector<int>
        staleness;  // an asynchronous server's: of each push to its last bucket, as it was applied
  };
  virtual Learned learned() = 0;
  // Whether it tells losses; `on_loss`, where it is set, hears of each as soon as it is known.
  virtual bool tells_losses() const { return false; }
  std::function<void(double)> on_loss;
};

}  // namespace rehearse
