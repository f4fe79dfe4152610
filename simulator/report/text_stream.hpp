// Reads the characters of a file, gzipped or not, one after the other.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/report/packed_file.hpp"

namespace rehearse {

class TextStream {
public:
  static constexpr int kEnd = -1;

  TextStream(const std::string& path, const std::string& kind)
      : path_(path), file_(path, kind), buffer_(std::size_t{1} << 18) {}

  const std::string& path() const { return path_; }
  int peek() {
    if (at_ == filled_ && !ended_) {
      filled_ = file_.read(buffer_.data(), buffer_.size());
      at_ = 0;
      ended_ = filled_ == 0;
    }
    return ended_ ? kEnd : static_cast<unsigned char>(buffer_[at_]);
  }
  bool at_end() { return peek() == kEnd; }
  int get() {
    const int c = peek();
    if (c == kEnd) return c;
    ++at_;
    ++column_;
    if (c == '\n') {
      ++line_;
      column_ = 1;
    }
    return c;
  }
  int line() const { return line_; }  // of the next character
  int column() const { return column_; }
  Place place() const { return {path_, line_, column_}; }

private:
  std::string path_;
  PackedFile file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, filled_ = 0;
  bool ended_ = false;
  int line_ = 1, column_ = 1;
};

// The characters of a text as an input iterator, which nlohmann's parsers take; without a text, it is the
// end.
class TextCharacters {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  TextCharacters() = default;
  explicit TextCharacters(TextStream& text) : text_(&text) {}
  char operator*() const { return static_cast<char>(text_->peek()); }
  TextCharacters& operator++() {
    text_->get();
    return *this;
  }
  TextCharacters operator++(int) {
    const TextCharacters before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TextCharacters& other) const { return at_end() == other.at_end(); }
  bool operator!=(const TextCharacters& other) const { return !(*this == other); }

private:
  bool at_end() const { return text_ == nullptr || text_->at_end(); }
  TextStream* text_ = nullptr;
};

}  // namespace rehearse
