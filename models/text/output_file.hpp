// Files that are written whole or not at all.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// Writes to a temporary file in the same folder and renames it when complete, so that an existing file
// survives a failure. Pipes, devices (/dev/stdout) and files in folders that cannot take new files are
// written directly.
class OutputFile {
public:
  explicit OutputFile(const std::string& path);  // RunError if it cannot be written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // removes what was not committed

  int descriptor() const { return file_; }
  void commit();                                   // closes it and gives it its name; RunError
  [[noreturn]] void fail(int error_number) const;  // RunError "PATH: cannot be written: ..."

private:
  std::string path_, target_;  // as it was given; with links followed
  std::string temporary_;      // beside the target; empty: written straight
  int file_ = -1;
};

// RunError if it cannot be written.
void write_whole_file(const std::string& path, const std::string& text);

// Whether both paths lead to one regular file, by whichever links.
bool same_file(const std::string& one, const std::string& other);

// InputError if `path`, the value of `option`, is one of the files that were read.
void refuse_to_overwrite(const std::string& option, const std::string& path,
                         const std::vector<std::string>& files_read);

}  // namespace rehearse
