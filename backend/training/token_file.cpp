#include "backend/training/token_file.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <utility>

#include "backend/training/sample_data.hpp"
#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

constexpr std::array<char, 9> kMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr long kLargestShort = 65'536;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw InputError({printable(path), 0, 0}, what);
}

// Returns the bytes of a token by the code of its type (Megatron-LM,
// megatron/core/datasets/indexed_dataset.py: DType).
int bytes_of_type(const std::string& path, int code) {
  switch (code) {
    case 1:
      return 1;
    case 3:
    case 8:
      return 2;
    case 4:
      return 4;
    case 5:
      return 8;
    default:
      refuse(path,
             fmt::format("byte 17 is {}, the type of its tokens; allowed: 1 (uint8), 3 (int16), 4 (int32), 5 "
                         "(int64) or 8 (uint16)",
                         code));
  }
}

// Returns the bytes of a token; checks that the index is one and that it fits the tokens.
int read_index(const std::string& path, std::size_t token_file_bytes) {
  const MappedFile index(path);
  const std::span<const std::byte> bytes = index.bytes();
  constexpr std::size_t kHeader = kMagic.size() + 8 + 1 + 8 + 8;
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    refuse(path, "does not begin with MMIDIDX; allowed: an index of Megatron-LM's indexed datasets");
  std::uint64_t version = 0, sequences = 0;
  std::memcpy(&version, bytes.data() + kMagic.size(), sizeof version);
  if (version != 1) refuse(path, fmt::format("is of version {}; allowed: 1", version));
  const int each = bytes_of_type(path, static_cast<int>(bytes[kMagic.size() + 8]));
  std::memcpy(&sequences, bytes.data() + kMagic.size() + 9, sizeof sequences);
  if (sequences > (bytes.size() - kHeader) / 12)
    refuse(path, fmt::format("has {} bytes, too few for {} documents", bytes.size(), sequences));
  std::uint64_t tokens = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    std::int32_t length = 0;
    std::memcpy(&length, bytes.data() + kHeader + i * sizeof length, sizeof length);
    if (length < 0) refuse(path, fmt::format("document {} has {} tokens", i, length));
    tokens += static_cast<std::uint64_t>(length);
  }
  if (tokens * static_cast<std::uint64_t>(each) > token_file_bytes)
    refuse(path, fmt::format("counts {} tokens of {} bytes; the .bin file has {} bytes", tokens, each,
                             token_file_bytes));
  return each;
}

}  // namespace

TokenFile::TokenFile(const std::string& path, long vocabulary, long length, std::uint64_t seed)
    : file_(path),
      vocabulary_(static_cast<std::uint64_t>(vocabulary)),
      length_(static_cast<std::uint64_t>(length)),
      seed_(seed) {
  std::string index = path;
  if (index.ends_with(".bin")) index.replace(index.size() - 4, 4, ".idx");
  std::error_code ignored;
  token_bytes_ = index != path && std::filesystem::exists(index, ignored)
                     ? read_index(index, file_.bytes().size())
                 : vocabulary <= kLargestShort ? 2
                                               : 4;
  const std::uint64_t tokens = file_.bytes().size() / static_cast<std::uint64_t>(token_bytes_);
  if (tokens < length_ + 1)
    refuse(path, fmt::format("has {} tokens of {} bytes; allowed: at least {}, a sequence and its last label",
                             tokens, token_bytes_, length_ + 1));
  sequences_ = (tokens - 1) / length_;
}

std::vector<std::uint32_t> TokenFile::tokens(std::uint64_t sequence, long count) const {
  const std::uint64_t place = shuffled(sequence % sequences_, sequences_, seed_, sequence / sequences_);
  const std::uint64_t first = place * length_;
  std::vector<std::uint32_t> tokens;
  for (std::uint64_t i = first; i < first + static_cast<std::uint64_t>(count); ++i) {
    std::uint64_t token = 0;
    std::memcpy(&token, file_.bytes().data() + i * static_cast<std::uint64_t>(token_bytes_),
                static_cast<std::size_t>(token_bytes_));
    if (token >= vocabulary_)
      refuse(file_.path(),
             fmt::format("token {} is {}; allowed: below the model's vocabulary, {}", i, token, vocabulary_));
    tokens.push_back(static_cast<std::uint32_t>(token));
  }
  return tokens;
}

std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch) {
  if (count < 2) return index;
  // A Feistel network permutes all numbers of an even number of bits; those that are too large are permuted
  // again until they are not (cycle walking, Black and Rogaway 2002).
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint32_t round = 0; round < 4; ++round) {
      const auto low = [](std::uint64_t word) { return static_cast<std::uint32_t>(word); };
      const std::uint64_t drawn =
          philox({low(right), low(right >> 32), low(epoch), round}, {low(seed), low(seed >> 32)})[0];
      left = std::exchange(right, left ^ (drawn & mask));
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

}  // namespace rehearse
