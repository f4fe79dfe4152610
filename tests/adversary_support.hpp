// What both adversaries share: numbers from a seed, and work that may crash or hang, in a process of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>

namespace rehearse::adversary {

// splitmix64 (Steele, Lea, Flood 2014): the same numbers with every standard library.
class Generator {
public:
  explicit Generator(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return next() % n; }  // n > 0
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class Container>
  const auto& pick(const Container& values) {
    return *(std::begin(values) + static_cast<std::ptrdiff_t>(below(std::size(values))));
  }

private:
  std::uint64_t state_;
};

// REHEARSE_SEED: the seed of the first input; input i has seed + i, so that a failing one runs alone with its
// own seed and REHEARSE_INPUTS=1.
std::uint64_t first_seed();
// REHEARSE_INPUTS, else a twentieth of `inputs` under the address sanitizer, else `inputs`.
int input_count(int inputs);

// Writes an input that failed to the folder of temporary files, and returns its path.
std::string saved(std::uint64_t seed, const std::string& ending, const std::string& text);

// What became of an input.
struct Verdict {
  enum class Kind {
    result,   // it was read, and what was simulated has sound figures
    refused,  // InputError
    failed,   // RunError
    broken,   // a property does not hold, another exception, a crash, a hang
  } kind = Kind::broken;
  std::string message;
};

// Calls `work` in a forked child with at most `seconds` of processor time and 4 GiB of memory (no such limit
// under the address sanitizer). A child that ends without a verdict is broken.
Verdict in_child(const std::function<Verdict()>& work, int seconds);

// `work` with its exceptions told: InputError is refused, RunError failed, every other one broken.
Verdict told(const std::function<Verdict()>& work);

}  // namespace rehearse::adversary
