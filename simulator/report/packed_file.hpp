// Files that may be gzipped, read in order.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace rehearse {

class PackedFile {
public:
  // InputError: no such file, or a directory where a `kind` is wanted.
  PackedFile(const std::string& path, const std::string& kind);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;
  // Unpacked bytes, `bytes` at most; 0 at the end. InputError: gzip data that ends early or is damaged, or a
  // file that cannot be read on.
  std::size_t read(char* data, std::size_t bytes);

private:
  class Source;
  std::string path_;
  std::unique_ptr<Source> source_;
};

}  // namespace rehearse
