#include "backend/training/sample_data.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "backend/training/philox.hpp"

namespace rehearse {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const PhiloxWords drawn = philox_words({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
  return {drawn.words[0], drawn.words[1], drawn.words[2], drawn.words[3]};
}

void standard_normal(std::uint64_t seed, RandomUse use, std::uint64_t number, float* to, long count) {
  const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
  const auto high = [](std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); };
  for (long first = 0; first < count; first += 4) {
    const auto words = philox({low(static_cast<std::uint64_t>(first) / 4), low(number), high(number),
                               static_cast<std::uint32_t>(use)},
                              {low(seed), high(seed)});
    float normal[4];
    for (int pair = 0; pair < 4; pair += 2) {
      // In double precision, so that math libraries that differ in the last bits almost always give the same
      // floats.
      const double uniform = (words[pair] + 0.5) * 0x1p-32;
      const double angle = 2 * std::numbers::pi * 0x1p-32 * words[pair + 1];
      const double radius = std::sqrt(-2 * std::log(uniform));
      normal[pair] = static_cast<float>(radius * std::cos(angle));
      normal[pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
    std::copy_n(normal, std::min(4L, count - first), to + first);
  }
}

SampleData::SampleData(std::uint64_t seed, long features, long classes)
    : seed_(seed),
      features_(features),
      classes_(classes),
      seen_(std::min(features, kTeacherFeatures)),
      teacher_(static_cast<std::size_t>(classes_ * seen_)) {
  for (long c = 0; c < classes_; ++c)
    standard_normal(seed_, RandomUse::teacher, static_cast<std::uint64_t>(c), &teacher_[c * seen_], seen_);
}

void SampleData::features(std::uint64_t sample, float* to) const {
  standard_normal(seed_, RandomUse::features, sample % kSamples, to, features_);
}

int SampleData::label(std::uint64_t sample) const {
  float seen[kTeacherFeatures];
  standard_normal(seed_, RandomUse::features, sample % kSamples, seen, seen_);
  int best = 0;
  double most = 0;
  for (long c = 0; c < classes_; ++c) {
    double sum = 0;
    for (long i = 0; i < seen_; ++i) sum += static_cast<double>(teacher_[c * seen_ + i]) * seen[i];
    if (c == 0 || sum > most) {
      best = static_cast<int>(c);
      most = sum;
    }
  }
  return best;
}

}  // namespace rehearse
