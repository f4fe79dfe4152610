// Writes files either completely or not at all.
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// Writes to a temporary file in the same folder and renames it when complete, so that an existing file
// survives a failure. Writes directly to pipes, devices (/dev/stdout) and files in folders where no files can
// be created.
class OutputFile {
public:
  explicit OutputFile(const std::string& path);  // throws RunError if the file cannot be written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();  // removes the temporary file if not committed

  int descriptor() const { return file_; }
  void commit();                                   // closes and renames the file; throws RunError
  [[noreturn]] void fail(int error_number) const;  // throws RunError "PATH: cannot be written: ..."

private:
  std::string path_, target_;  // as given; with links resolved
  std::string temporary_;      // in the folder of the target; empty: written directly
  int file_ = -1;
};

// Throws RunError if the file cannot be written.
void write_whole_file(const std::string& path, const std::string& text);

// Whether both paths lead to the same regular file, through any links.
bool same_file(const std::string& one, const std::string& other);

// Throws InputError if `path`, the value of `option`, is one of the files that were read.
void refuse_to_overwrite(const std::string& option, const std::string& path,
                         const std::vector<std::string>& files_read);

}  // namespace rehearse
