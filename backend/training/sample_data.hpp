// Training data made from a seed: each sample depends on the seed and its number alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rehearse {

// Four random words from a counter and a key (philox.hpp).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// What numbers are drawn for: each use has a sequence of its own.
enum class RandomUse : std::uint32_t { features, teacher, weights, factors, dropout };

// Standard normal numbers 0 to count - 1 of the sequence (seed, use, number), by Box and Muller (1958).
void standard_normal(std::uint64_t seed, RandomUse use, std::uint64_t number, float* to, long count);

// Features are standard normal; the label is the class for which a fixed random linear teacher, which looks
// at the first kTeacherFeatures features, gives the most. There are kSamples different ones: sample number n
// is number n mod kSamples again, so that a net that is as wide as the features are many learns something in
// 50 steps.
class SampleData {
public:
  static constexpr std::uint64_t kSamples = 1024;
  static constexpr long kTeacherFeatures = 64;
  SampleData(std::uint64_t seed, long features, long classes);
  void features(std::uint64_t sample, float* to) const;
  int label(std::uint64_t sample) const;

private:
  std::uint64_t seed_;
  long features_, classes_, seen_;
  std::vector<float> teacher_;  // [classes, seen]
};

}  // namespace rehearse
