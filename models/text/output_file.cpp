#include "models/text/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

bool begins_with(const std::string& text, const char* front) {
  return text.rfind(front, 0) == 0;
}

// A link to an open file, such as /dev/stdout, must be written to directly: a new file under its name would
// not reach the process that opened it.
bool is_written_straight(const std::string& path, bool exists, const struct stat& about) {
  if (begins_with(path, "/dev/") || begins_with(path, "/proc/")) return true;
  return exists ? !S_ISREG(about.st_mode) : fs::is_symlink(fs::symlink_status(path));
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  struct stat about {};
  const bool exists = stat(path.c_str(), &about) == 0;
  if (exists && access(path.c_str(), W_OK) != 0) fail(errno);
  const auto open_straight = [&] {
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail(errno);
  };
  if (is_written_straight(path, exists, about)) {
    open_straight();
    return;
  }
  std::error_code ignored;
  target_ = exists ? fs::canonical(path, ignored).string() : path;
  if (target_.empty()) target_ = path;
  static int number = 0;
  // The name does not extend the target's name, which may leave no room for a suffix.
  const std::string beside =
      (fs::path(target_).parent_path() / fmt::format(".rehearse-{}-{}.part", getpid(), ++number)).string();
  file_ = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) {
    if (!exists) fail(errno);
    open_straight();
    return;
  }
  temporary_ = beside;
  // A file system without modes ignores this.
  if (exists) (void)!fchmod(file_, about.st_mode & 07777);
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::commit() {
  if (close(std::exchange(file_, -1)) != 0) fail(errno);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void OutputFile::fail(int error_number) const {
  throw RunError(fmt::format("{}: cannot be written: {}", printable(path_),
                             std::strerror(error_number == 0 ? EIO : error_number)));
}

void write_whole_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t n = write(file.descriptor(), text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) file.fail(errno);
    written += static_cast<std::size_t>(n);
  }
  file.commit();
}

bool same_file(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  if (stat(one.c_str(), &a) != 0 || stat(other.c_str(), &b) != 0) return false;
  return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void refuse_to_overwrite(const std::string& option, const std::string& path,
                         const std::vector<std::string>& files_read) {
  for (const std::string& read : files_read) {
    if (!same_file(path, read)) continue;
    throw InputError({}, fmt::format("{} {} would overwrite {}, which is read; allowed: another file", option,
                                     printable(path), path == read ? "this file" : printable(read)));
  }
}

}  // namespace rehearse
