// Generates training sequences from a seed. A sequence depends only on the seed and its number.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// A Markov chain: every token has kSuccessors possible successors, one of which is taken at random, so a
// model that knows the chain predicts the next token with a loss of ln kSuccessors instead of ln
// `vocabulary`. There are kSequences different sequences: sequence n equals sequence n mod kSequences.
class TokenData {
public:
  static constexpr std::uint64_t kSequences = 1024;
  static constexpr std::uint32_t kSuccessors = 2;
  TokenData(std::uint64_t seed, long vocabulary);
  std::vector<std::uint32_t> tokens(std::uint64_t sequence, long count) const;

private:
  std::uint64_t seed_;
  std::uint32_t vocabulary_;
};

}  // namespace rehearse
