// Manages one rank's buffers for ring attention, in which keys and values travel around a ring of ranks,
// followed by their gradients (simulator/strategies/programs/ring_attention.hpp). All layers share them. A
// forward pass that alternates with a recomputation has separate buffers.
#pragma once

#include <array>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// A message of a ring. At step k of `ranks`, the keys and values that are computed with travel on to the next
// rank, except at the last step. In a backward pass, the gradients of those of step k - 1 travel along,
// except at the first step. After the last step only gradients travel.
struct RingMessage {
  int step = 0, ranks = 1;
  bool backward = false;
  bool of_forward_pass = true;  // else of a recomputation or a backward pass
  bool keys() const { return step + 1 < ranks; }
  bool gradients() const { return backward && step > 0; }
};

class RingKeys {
public:
  RingKeys() = default;
  // `elements`: of the keys and values together on one rank.
  RingKeys(Arithmetic& arithmetic, std::size_t elements);

  // Returns the keys and values that a step computes with: `own` at the first step.
  Array held(int step, const Array& own) const;
  // Returns the array to which this rank writes its part of the gradients of a step's keys and values.
  Array gradients(int step) const;
  // Fills and returns the send buffer of a message; its gradients are this rank's plus those received so far.
  Array sent(int stream, const RingMessage& message, const Array& own);
  // Returns the receive buffer of a message, except for one that only returns the gradients of this rank's
  // own keys.
  Array received(const RingMessage& message) const;

private:
  Arithmetic* arithmetic_ = nullptr;
  std::size_t elements_ = 0;
  OwnedArray sent_;
  std::array<OwnedArray, 2> received_, gradients_;  // by parity of the step to which they belong
};

}  // namespace rehearse
