// Tests training on files of tokens: their formats, their order, and that ranks divide them as they divide
// generated data.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <set>

#include "backend/training/token_data.hpp"
#include "models/text/error.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

// An index as Megatron-LM writes it (megatron/core/datasets/indexed_dataset.py): magic, version, type,
// numbers of sequences and of document boundaries, lengths, pointers, boundaries.
std::string index_of(int type, const std::vector<std::int32_t>& lengths, std::uint64_t version = 1) {
  std::string text = std::string("MMIDIDX\0\0", 9) + bytes_of<std::uint64_t>({version}) +
                     static_cast<char>(type) + bytes_of<std::uint64_t>({lengths.size(), lengths.size() + 1}) +
                     bytes_of(lengths);
  std::vector<std::int64_t> pointers, documents(lengths.size() + 1);
  std::int64_t at = 0;
  for (const std::int32_t length : lengths) {
    pointers.push_back(at);
    at += length;
  }
  std::iota(documents.begin(), documents.end(), 0);
  return text + bytes_of(pointers) + bytes_of(documents);
}

template <class T>
std::vector<T> counted(std::size_t count, T modulo) {
  std::vector<T> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<T>(i % static_cast<std::size_t>(modulo));
  return numbers;
}

// Tokens of a chain in which each has two successors, as the data that runs make.
std::vector<std::uint16_t> chain(std::size_t count, long vocabulary) {
  const TokenData data(3, vocabulary);
  std::vector<std::uint16_t> all;
  for (std::uint64_t n = 0; all.size() < count; ++n)
    for (const std::uint32_t token : data.tokens(n, 64)) all.push_back(static_cast<std::uint16_t>(token));
  all.resize(count);
  return all;
}

}  // namespace

TEST_CASE("token files: an epoch has every sequence once, in an order of its own") {
  for (const std::uint64_t count : {1U, 2U, 3U, 16U, 17U, 255U, 1000U, 4097U}) {
    CAPTURE(count);
    std::vector<std::vector<std::uint64_t>> orders;
    for (const std::uint64_t epoch : {0U, 1U}) {
      std::vector<std::uint64_t>& order = orders.emplace_back();
      for (std::uint64_t i = 0; i < count; ++i) order.push_back(shuffled(i, count, 5, epoch));
      const std::set<std::uint64_t> all(order.begin(), order.end());
      CHECK(all.size() == count);
      CHECK(*all.rbegin() == count - 1);
    }
    if (count > 16) CHECK(orders[0] != orders[1]);
    if (count > 16) CHECK(!std::is_sorted(orders[0].begin(), orders[0].end()));
  }
}

TEST_CASE("token files: all types have the same tokens") {
  const Scratch scratch;
  const long vocabulary = 100, length = 8;
  const std::string plain = scratch.write("plain.bin", bytes_of(counted<std::uint16_t>(83, 100)));
  const TokenFile expected(plain, vocabulary, length, 1);
  CHECK(expected.sequences() == 10);  // the last sequence's last label is token 80
  std::set<std::uint32_t> firsts;
  for (std::uint64_t n = 0; n < 10; ++n) {
    const std::vector<std::uint32_t> tokens = expected.tokens(n, length + 1);
    firsts.insert(tokens.front());
    for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(tokens[i] == tokens.front() + i);
  }
  CHECK(firsts == std::set<std::uint32_t>{0, 8, 16, 24, 32, 40, 48, 56, 64, 72});
  struct Case {
    const char* name;
    int type;
    std::string bytes;
  };
  for (const Case& c : std::vector<Case>{{"uint8", 1, bytes_of(counted<std::uint8_t>(83, 100))},
                                         {"int16", 3, bytes_of(counted<std::int16_t>(83, 100))},
                                         {"int32", 4, bytes_of(counted<std::int32_t>(83, 100))},
                                         {"int64", 5, bytes_of(counted<std::int64_t>(83, 100))},
                                         {"uint16", 8, bytes_of(counted<std::uint16_t>(83, 100))}}) {
    CAPTURE(c.name);
    const std::string name = c.name, path = scratch.write(name + ".bin", c.bytes);
    scratch.write(name + ".idx", index_of(c.type, {40, 0, 43}));
    const TokenFile file(path, vocabulary, length, 1);
    for (std::uint64_t n = 0; n < 25; ++n)
      CHECK(file.tokens(n, length + 1) == expected.tokens(n, length + 1));
  }
  // A vocabulary of more than 65,536 words is stored in 32 bits.
  const std::string wide = scratch.write("wide.bin", bytes_of(counted<std::uint32_t>(83, 100)));
  CHECK(TokenFile(wide, 70'000, length, 1).tokens(3, length) == expected.tokens(3, length));
}

TEST_CASE("token files: what is malformed is refused with its place") {
  const Scratch scratch;
  struct Case {
    const char* what;
    std::string tokens, index, expected;
  };
  const std::string good = bytes_of(counted<std::uint16_t>(83, 100));
  for (const Case& c : std::vector<Case>{
           {"short", bytes_of(counted<std::uint16_t>(8, 100)), "",
            ".bin: has 8 tokens of 2 bytes; allowed: at least 9, a sequence and its last label"},
           {"empty", "", "", ".bin: has 0 tokens of 2 bytes"},
           {"no index", good, "MMIDI", ".idx: does not begin with MMIDIDX"},
           {"version", good, index_of(8, {83}, 2), ".idx: is of version 2; allowed: 1"},
           {"type", good, index_of(6, {83}),
            ".idx: byte 17 is 6, the type of its tokens; allowed: 1 (uint8)"},
           {"negative", good, index_of(8, {-1}), ".idx: document 0 has -1 tokens"},
           {"too many tokens", good, index_of(8, {84}),
            ".idx: counts 84 tokens of 2 bytes; the .bin file has 166 bytes"},
           {"truncated", good, index_of(8, {40, 43}).substr(0, 36),
            ".idx: has 36 bytes, too few for 2 documents"}}) {
    CAPTURE(c.what);
    const std::string path = scratch.write("data.bin", c.tokens);
    std::filesystem::remove(scratch.path("data.idx"));
    if (!c.index.empty()) scratch.write("data.idx", c.index);
    std::string found = "accepted";
    try {
      const TokenFile file(path, 100, 8, 1);
    } catch (const InputError& error) {
      found = error.what();
    }
    INFO(found);
    CHECK(found.find(c.expected) != std::string::npos);
  }
  CHECK_THROWS_AS(TokenFile(scratch.path("missing.bin"), 100, 8, 1), InputError);
  CHECK_THROWS_AS(TokenFile(scratch.path(""), 100, 8, 1), InputError);
  std::filesystem::remove(scratch.path("data.idx"));
  const TokenFile small(scratch.write("data.bin", good), 10, 8, 1);
  CHECK_THROWS_AS(
      [&] {
        for (std::uint64_t n = 0; n < 10; ++n) small.tokens(n, 9);
      }(),
      InputError);
}

TEST_CASE("token files: ranks train on a file as one rank does, and learn from it") {
  const Scratch scratch;
  scratch.write("text.bin", bytes_of(chain(64 * 256, 64)));
  const std::string scenario =
      scratch.write("job.toml", std::string(kTinyTransformer) + "[run]\nsteps = 60\ndata = \"text.bin\"\n");
  const auto losses = [&](const std::string& sets) {
    return losses_of("run " + scenario + " --oversubscribe --format json " + sets);
  };
  const std::vector<double> one = losses("");
  const auto mean = [&](std::size_t first, std::size_t end) {
    return std::accumulate(one.begin() + static_cast<std::ptrdiff_t>(first),
                           one.begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
           static_cast<double>(end - first);
  };
  CHECK(mean(50, 60) < 0.9 * mean(0, 10));
  for (const char* sets :
       {"--set cluster.nodes=2", "--set cluster.nodes=2 --set strategy.pipeline=2 --set strategy.data=1",
        "--set cluster.nodes=2 --set strategy.context=2 --set strategy.data=1"}) {
    CAPTURE(sets);
    const std::vector<double> many = losses(sets);
    REQUIRE(many.size() == one.size());
    for (std::size_t step = 0; step < one.size(); ++step)
      CHECK(many[step] == Approx(one[step]).epsilon(1e-4));
  }
  const Outcome missing = run_program("rehearse-run", "run " + scenario + " --set run.data=other.bin");
  CHECK(missing.status == 2);
  CHECK(missing.err.find("other.bin: No such file or directory") != std::string::npos);
}
