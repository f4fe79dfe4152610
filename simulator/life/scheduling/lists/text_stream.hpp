// Reads the characters of a file, gzipped or not, one after the other.
#pragma once

#include <string>
#include <vector>

#include "models/text/error.hpp"
#include "simulator/report/packed_file.hpp"

namespace rehearse {

class TextStream {
public:
  static constexpr int kEnd = -1;

  TextStream(const std::string& path, const std::string& kind)
      : path_(path), file_(path, kind), buffer_(1 << 16) {}

  const std::string& path() const { return path_; }
  int peek() {
    if (at_ == filled_) {
      filled_ = file_.read(buffer_.data(), buffer_.size());
      at_ = 0;
    }
    return filled_ == 0 ? kEnd : static_cast<unsigned char>(buffer_[at_]);
  }
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
  int line_ = 1, column_ = 1;
};

}  // namespace rehearse
