// Computes a hash of several texts, to check whether a results file belongs to the same question.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace rehearse {

// FNV-1a (Fowler, Noll, Vo) with 64 bits: identical on every machine.
class TextHash {
public:
  void add(std::string_view text) {
    for (const unsigned char c : text) add_byte(c);
    add_byte(0xFF);  // does not occur in UTF-8, so it separates the texts
  }
  std::string hex() const { return fmt::format("{:016x}", state_); }

private:
  void add_byte(unsigned char byte) { state_ = (state_ ^ byte) * 1099511628211u; }
  std::uint64_t state_ = 14695981039346656037u;
};

}  // namespace rehearse
