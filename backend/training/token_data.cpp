#include "backend/training/token_data.hpp"

#include <utility>

#include "backend/training/sample_data.hpp"

namespace rehearse {
namespace {

std::uint32_t low(std::uint64_t word) {
  return static_cast<std::uint32_t>(word);
}
std::uint32_t high(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}

}  // namespace

TokenData::TokenData(std::uint64_t seed, long vocabulary)
    : seed_(seed), vocabulary_(static_cast<std::uint32_t>(vocabulary)) {}

TokenData::TokenData(TokenFile file) : seed_(0), vocabulary_(0), file_(std::move(file)) {}

std::vector<std::uint32_t> TokenData::tokens(std::uint64_t sequence, long count) const {
  if (file_) return file_->tokens(sequence, count);
  const auto random = [&](RandomUse use, std::uint32_t counter, std::uint64_t number) {
    return philox({counter, low(number), high(number), static_cast<std::uint32_t>(use)},
                  {low(seed_), high(seed_)})[0];
  };
  std::vector<std::uint32_t> tokens;
  for (long i = 0; i < count; ++i) {
    const std::uint32_t drawn =
        random(RandomUse::features, static_cast<std::uint32_t>(i), sequence % kSequences);
    tokens.push_back(tokens.empty()
                         ? drawn % vocabulary_
                         : random(RandomUse::teacher, drawn % kSuccessors, tokens.back()) % vocabulary_);
  }
  return tokens;
}

}  // namespace rehearse
