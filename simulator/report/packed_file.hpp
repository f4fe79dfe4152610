// Reads files that can be gzipped, in order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace rehearse {

class PackedFile {
public:
  // Throws InputError if there is no such file, or if it is a directory instead of a `kind`.
  PackedFile(const std::string& path, const std::string& kind);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;
  // Reads at most `bytes` unpacked bytes and returns their number; 0 at the end. Throws InputError if gzip
  // data ends early or is damaged, or on a read error.
  std::size_t read(char* data, std::size_t bytes);

private:
  class Source;
  std::string path_;
  std::unique_ptr<Source> source_;
};

}  // namespace rehearse
