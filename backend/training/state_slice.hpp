// Defines the numbers of a training that a rank holds, and that checkpoints consist of.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

enum class StateKind { weights, momentum, second_moment };
inline constexpr std::array<std::string_view, 3> kStateKindNames = {"weights", "momentum", "second moment"};

// Elements [first, first + count) of one kind of a layer's numbers, in fp32.
struct StateSlice {
  StateKind kind = StateKind::weights;
  int layer = 0;
  // Which part of the layer it is, if ranks divide it: ranks with the same one hold the same numbers.
  std::string place;
  std::size_t first = 0, count = 0, of = 0;  // `of`: elements of the whole part
  bool operator==(const StateSlice&) const = default;
};

// A slice in the memory of a device.
struct HeldState {
  StateSlice slice;
  Array array;
  bool copy = false;  // of what other ranks hold: it is read from checkpoints, but not written to them
};

class TrainState {
public:
  virtual ~TrainState() = default;
  // Returns why checkpoints cannot contain everything that the training continues from; empty: they can.
  virtual std::string why_not_saved() const = 0;
  // Returns everything that the rank holds. All streams must rest.
  virtual std::vector<HeldState> held() = 0;
  // Must be called after held() was overwritten with the state after `rounds` runs of the schedule.
  virtual void restored(long rounds) = 0;
};

}  // namespace rehearse
