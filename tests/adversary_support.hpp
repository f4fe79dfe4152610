// Provides what both adversary tests share: seeded random numbers, and child processes for work that may
// crash or hang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>

namespace rehearse::adversary {

// splitmix64 (Steele, Lea, Flood 2014), which gives the same numbers with every standard library.
class Generator {
public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return next() % n; }  // in [0, n); requires n > 0
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class Container>
  const auto& pick(const Container& values) {
    return *(std::begin(values) + static_cast<std::ptrdiff_t>(below(std::size(values))));
  }

private:
  std::uint64_t state_;
};

// Returns REHEARSE_SEED, the seed of the first input. Input i has seed + i, so a failing input can be rerun
// alone with its seed and REHEARSE_INPUTS=1.
std::uint64_t first_seed();
// Returns REHEARSE_INPUTS if set, otherwise `inputs`, or a twentieth of it under the address sanitizer.
int input_count(int inputs);

// Writes a failing input to the folder for temporary files, and returns its path.
std::string saved(std::uint64_t seed, const std::string& ending, const std::string& text);

// The outcome of an input.
struct Verdict {
  enum class Kind {
    result,   // it was read, and its simulation has sound figures
    refused,  // InputError
    failed,   // RunError
    broken,   // a property does not hold, another exception, a crash or a hang
  } kind = Kind::broken;
  std::string message;
};

// Calls `work` in a forked child with at most `seconds` of processor time and 4 GiB of memory (no memory
// limit under the address sanitizer). A child that ends without a verdict is broken.
Verdict in_child(const std::function<Verdict()>& work, int seconds);

// Runs `work` and turns its exceptions into verdicts: InputError is refused, RunError failed, any other one
// broken.
Verdict told(const std::function<Verdict()>& work);

}  // namespace rehearse::adversary
