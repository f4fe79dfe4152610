// Writes text files, gzipped if their name says so, piece by piece.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "models/text/output_file.hpp"

namespace rehearse {

// A plain or gzipped (.gz) file, which appears once it is complete. Reports every write failure, in close()
// at the latest.
class PackedOutput {
public:
  // The destination of a file's bytes. Functions return whether they succeeded.
  struct Bytes {
    virtual ~Bytes() = default;
    virtual bool write(const char* data, std::size_t bytes) = 0;
    virtual bool close() = 0;
  };

  // Throws RunError if the file cannot be written, and InputError for a gzipped one if this program was built
  // without zlib.
  explicit PackedOutput(const std::string& path);

  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= 1 << 16) flush();
  }

  void close();

private:
  void flush();

  OutputFile file_;
  std::unique_ptr<Bytes> bytes_;
  fmt::memory_buffer buffer_;
};

}  // namespace rehearse
