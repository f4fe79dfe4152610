// Generates training data from a seed: each sample depends only on the seed and its number.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace rehearse {

// Returns four random words from a counter and a key (philox.hpp).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// The purposes of random numbers; each has an independent sequence.
enum class RandomUse : std::uint32_t { features, teacher, weights, factors, dropout };

// Writes numbers 0 to count - 1 of the standard normal sequence (seed, use, number), by Box and Muller
// (1958).
void standard_normal(std::uint64_t seed, RandomUse use, std::uint64_t number, float* to, long count);

// Samples with standard normal features. The label is the class with the highest score of a fixed random
// linear teacher, which sees the first kTeacherFeatures features. There are kSamples different samples
// (sample n equals sample n mod kSamples), so that a network as wide as there are features learns something
// in 50 steps.
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
