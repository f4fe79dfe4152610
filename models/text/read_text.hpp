// Files and standard input as text, up to a limit.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace rehearse {

inline constexpr std::size_t kMostTextBytes = std::size_t{16} << 20;

// read_text_file() of document.hpp with another limit; no more than that is read.
std::string read_text_file(const std::string& path, const std::string& kind, std::size_t most_bytes);
// All of `in`, which errors call `name`. InputError for more than `most_bytes`.
std::string read_text(std::istream& in, const std::string& name, const std::string& kind,
                      std::size_t most_bytes = kMostTextBytes);

// Collects, as long as it lives, the paths of the files that read_text_file reads on its thread.
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
  FilesRead* outer_;  // collects too
};

}  // namespace rehearse
