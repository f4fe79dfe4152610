// Reads files and standard input as text, up to a size limit.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace rehearse {

inline constexpr std::size_t kMostTextBytes = std::size_t{16} << 20;

// Like read_text_file() of document.hpp with another limit; reads no more than that.
std::string read_text_file(const std::string& path, const std::string& kind, std::size_t most_bytes);
// Reads all of `in`, which errors call `name`. Throws InputError if there are more than `most_bytes`.
std::string read_text(std::istream& in, const std::string& name, const std::string& kind,
                      std::size_t most_bytes = kMostTextBytes);

// Records, during its lifetime, the paths of the files that read_text_file() reads on this thread.
class FilesRead {
public:
  FilesRead();
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;
  const std::vector<std::string>& paths() const { return paths_; }

private:
  friend std::string read_text_file(const std::string&, const std::string&, std::size_t);
  std::vector<std::string> paths_;
  FilesRead* outer_;  // the enclosing recorder, which records too
};

}  // namespace rehearse
