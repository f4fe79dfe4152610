// Maps a file into memory, so that only what is read of it is loaded.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace rehearse {

class MappedFile {
public:
  explicit MappedFile(const std::string& path);  // throws InputError if it cannot be read
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace rehearse
