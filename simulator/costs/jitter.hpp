// Defines jitter: computations that take times of random length.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rehearse {

struct Jitter {
  // Of the factor on a computation's time, whose mean is 1. Exponential: 1 - deviation is certain, the rest
  // has an exponential distribution.
  enum class Kind { none, normal, log_normal, exponential } kind = Kind::none;
  double deviation = 0;  // standard deviation
  // What has a factor of its own: each op of each step, each step of a rank, or each rank.
  enum class Per { op, step, device } per = Per::op;
  int steps = 0;  // that are measured; 0: as many as are cheap
  std::uint64_t seed = 1;
  bool any() const { return kind != Kind::none && deviation > 0; }
};
inline constexpr std::array<std::string_view, 4> kJitterKindNames = {"none", "normal", "log-normal",
                                                                     "exponential"};
inline constexpr std::array<std::string_view, 3> kJitterPerNames = {"op", "step", "device"};

// Returns the factor of an op, which is the same whenever it is asked for. Normal factors are at least 0.
double jitter_factor(const Jitter& jitter, int rank, int step, int op);

}  // namespace rehearse
