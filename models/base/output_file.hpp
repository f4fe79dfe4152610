// Files that are written whole or not at all.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// A file that takes its place under its name when it is complete: until then what stood there stays. What is
// not a regular file (a pipe, /dev/stdout) and what stands in a folder that takes no new files is written
// straight.
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
