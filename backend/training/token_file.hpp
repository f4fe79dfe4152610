// Reads sequences of tokens from a file: Megatron-LM's pair of .bin and .idx, or a plain .bin of 16- or
// 32-bit numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/training/mapped_file.hpp"

namespace rehearse {

// The tokens of all documents, one after the other. Sequence n is the n-th window of `length` tokens, as in
// Megatron-LM's GPTDataset before it shuffles; each epoch has them in another order, which depends on the
// seed alone.
class TokenFile {
public:
  // `path`: the .bin file. With an .idx file of the same name, that says of which type the tokens are;
  // without, they are of 16 bits if the vocabulary has at most 65,536 words, else of 32. Throws InputError,
  // with the place in the file, if the files are malformed or too short for one sequence.
  TokenFile(const std::string& path, long vocabulary, long length, std::uint64_t seed);

  std::uint64_t sequences() const { return sequences_; }  // of an epoch
  // Returns `count` tokens from the beginning of a sequence on, which is numbered through all epochs. Throws
  // InputError for a token that is not in the vocabulary.
  std::vector<std::uint32_t> tokens(std::uint64_t sequence, long count) const;

private:
  MappedFile file_;
  int token_bytes_ = 2;
  std::uint64_t vocabulary_, length_, sequences_ = 0, seed_;
};

// Returns a number of [0, count) for each of them, each once: position `index` of the order of an epoch.
std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace rehearse
