// Provides training sequences: generated from a seed, or read from a file. A sequence depends only on the
// seed and its number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backend/training/token_file.hpp"

namespace rehearse {

// Without a file, a Markov chain: every token has kSuccessors possible successors, one of which is taken at
// random, so a model that knows the chain predicts the next token with a loss of ln kSuccessors instead of ln
// `vocabulary`. There are kSequences different sequences: sequence n equals sequence n mod kSequences.
class TokenData {
public:
  static constexpr std::uint64_t kSequences = 1024;
  static constexpr std::uint32_t kSuccessors = 2;
  TokenData(std::uint64_t seed, long vocabulary);
  explicit TokenData(TokenFile file);
  std::vector<std::uint32_t> tokens(std::uint64_t sequence, long count) const;

private:
  std::uint64_t seed_;
  std::uint32_t vocabulary_;
  std::optional<TokenFile> file_;
};

}  // namespace rehearse
