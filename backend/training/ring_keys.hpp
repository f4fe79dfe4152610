// Keys and values that go around a ring of ranks, and their gradients behind them: the buffers of one rank,
// which all layers use (simulator/strategies/programs/ring_attention.hpp). Where a forward pass takes turns
// with another one, that has buffers of its own.
#pragma once

#include <array>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

// A message of a ring. At step k of `ranks`, keys and values that are computed with go on to the next rank,
// but for the last step; in a backward pass the gradients of those of step k - 1, but for the first one; and
// behind the last step gradients alone.
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
  // `elements`: of keys and values together on one rank.
  RingKeys(Arithmetic& arithmetic, std::size_t elements);

  // What is computed with at a step: `own` at the first one.
  Array held(int step, const Array& own) const;
  // Where this rank's part of their gradients is written.
  Array gradients(int step) const;
  // Fills and returns the send buffer of a message; its gradients are this rank's plus those received so far.
  Array sent(int stream, const RingMessage& message, const Array& own);
  // Where it is received, unless gradients alone come home.
  Array received(const RingMessage& message) const;

private:
  Arithmetic* arithmetic_ = nullptr;
  std::size_t elements_ = 0;
  OwnedArray sent_;
  std::array<OwnedArray, 2> received_, gradients_;  // by parity of the step that they are of
};

}  // namespace rehearse
