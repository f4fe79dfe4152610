#include "simulator/commands/tasks/shared_results.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

constexpr std::string_view kFormat = "rehearse-results\t", kVersion = "1\t";
// Bytes of the file that serve as locks. No file is this long, and every file system accepts such offsets.
constexpr off_t kWriting = off_t{1} << 62;               // exclusive to write, shared to read
constexpr off_t kPresent = kWriting + 1;                 // shared, while an object exists
constexpr off_t kGathering = kWriting + 2;               // held by rank 0 while it waits for the other ranks
constexpr off_t kArrived = kWriting + 3;                 // + rank: that rank has seen rank 0 waiting
constexpr off_t kClaimed = kWriting + (off_t{1} << 32);  // + task

struct flock lock_of(short type, off_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// Waits until `happened` returns true; returns false if that takes more than `patience_s` seconds.
bool await(double patience_s, const std::function<bool()>& happened) {
  const auto start = std::chrono::steady_clock::now();
  for (int pause_ms = 1; !happened(); pause_ms = std::min(2 * pause_ms, 100)) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > patience_s)
      return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
  return true;
}

}  // namespace

// The lock on kWriting. Other processes hold it only for moments, unless they are suspended.
class SharedResults::Lock {
public:
  Lock(SharedResults& results, short type) : results_(results) {
    struct flock lock = lock_of(type, kWriting);
    while (fcntl(results.file_, F_SETLKW, &lock) != 0)
      if (errno != EINTR) results.fail("cannot be locked");
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { results_.unlock(kWriting); }

private:
  SharedResults& results_;
};

SharedResults::SharedResults(const std::string& path, const std::string& identity, bool force_new,
                             Ranks ranks, double patience_s)
    : path_(path), head_(fmt::format("{}{}{}\n", kFormat, kVersion, identity)), ranks_(ranks) {
  if (identity.empty() || std::any_of(identity.begin(), identity.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < ' '; }))
    throw std::invalid_argument("an identity of results must be one line of text");
  try {
    open_file(patience_s);
    if (force_new) {
      begin_anew(patience_s);
    } else {
      if (!await(patience_s, [&] { return try_lock(F_RDLCK, kPresent); }))
        throw RunError(fmt::format("{}: another process has been restarting this file for {} s",
                                   printable(path_), patience_s));
      await_head(patience_s);
    }
    refresh();
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

SharedResults::~SharedResults() {
  close(file_);
}

void SharedResults::open_file(double patience_s) {
  const int create = ranks_.rank == 0 ? O_CREAT : 0;
  const bool opened = await(patience_s, [&] {
    file_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | create, 0666);
    return file_ >= 0 || errno != ENOENT || create != 0;
  });
  if (!opened)
    throw RunError(fmt::format("{}: rank {} has waited {} s for rank 0 to create this file", printable(path_),
                               ranks_.rank, patience_s));
  struct stat status {};
  if (file_ < 0 ? errno == EISDIR : fstat(file_, &status) == 0 && !S_ISREG(status.st_mode))
    throw InputError({path_},
                     "is not a regular file, which several processes can share; allowed: a regular file");
  if (file_ < 0) fail("cannot be written");
}

// Rank 0 empties the file, takes kGathering, waits until it sees the locks of all ranks, and writes the head.
// So a rank that has seen kGathering taken finds no old results, and it finds no head if rank 0 has died.
void SharedResults::begin_anew(double patience_s) {
  if (ranks_.rank > 0) {
    const auto is_gathering = [&] { return is_locked_by_others(kGathering); };
    const auto has_gathered = [&] { return try_lock(F_RDLCK, kGathering); };
    const auto in_vain = [&] {
      throw RunError(fmt::format("{}: rank {} has waited {} s for rank 0 to restart this file",
                                 printable(path_), ranks_.rank, patience_s));
    };
    if (!await(patience_s, is_gathering) || !try_lock(F_WRLCK, kArrived + ranks_.rank)) in_vain();
    if (!await(patience_s, has_gathered) || !try_lock(F_RDLCK, kPresent)) in_vain();
    unlock(kGathering);
    unlock(kArrived + ranks_.rank);
    const Lock reading(*this, F_RDLCK);
    if (!has_head())
      throw RunError(fmt::format("{}: rank 0 ended before it had restarted this file", printable(path_)));
    return;
  }
  {
    const Lock writing(*this, F_WRLCK);
    std::string front(kFormat.size(), '\0');
    const ssize_t n = pread(file_, front.data(), front.size(), 0);
    if (n < 0) fail("cannot be read");
    if (kFormat.substr(0, static_cast<std::size_t>(n)) != front.substr(0, static_cast<std::size_t>(n)))
      throw InputError({path_, 1, 1}, "is not a results file, and is left unchanged; choose another file");
    if (!try_lock(F_WRLCK, kPresent))
      throw InputError({path_},
                       "other processes are using this file; allowed: to start over when they have ended, or "
                       "to join them without --force-new");
    if (ftruncate(file_, 0) != 0) fail("cannot be emptied");
  }
  if (!await(patience_s, [&] { return try_lock(F_WRLCK, kGathering); })) fail("cannot be locked");
  for (long rank = 1; rank < ranks_.size; ++rank)
    if (!await(patience_s, [&] { return is_locked_by_others(kArrived + rank); }))
      throw RunError(fmt::format("{}: rank 0 has waited {} s for rank {} of {}", printable(path_), patience_s,
                                 rank, ranks_.size));
  {
    const Lock writing(*this, F_WRLCK);
    write_head();
  }
  if (!try_lock(F_RDLCK, kPresent)) fail("cannot be locked");
  unlock(kGathering);
}

void SharedResults::await_head(double patience_s) {
  if (ranks_.rank == 0) {
    const Lock writing(*this, F_WRLCK);
    if (!has_head()) write_head();
    return;
  }
  const bool there = await(patience_s, [&] {
    const Lock reading(*this, F_RDLCK);
    return has_head();
  });
  if (!there)
    throw RunError(fmt::format("{}: rank {} has waited {} s for rank 0 to begin this file", printable(path_),
                               ranks_.rank, patience_s));
}

// Returns whether the complete head is there. Throws InputError if it belongs to another question.
bool SharedResults::has_head() {
  // Read more than our head, so that the head of another question can be recognized.
  std::string text(head_.size() + 4096, '\0');
  const ssize_t n = pread(file_, text.data(), text.size(), 0);
  if (n < 0) fail("cannot be read");
  text.resize(static_cast<std::size_t>(n));
  if (text.compare(0, head_.size(), head_) == 0) {
    complete_bytes_ = std::max(complete_bytes_, static_cast<off_t>(head_.size()));
    return true;
  }
  if (head_.compare(0, text.size(), text) == 0) return false;  // the head is torn, or the file is empty
  const std::string line = text.substr(0, text.find('\n'));
  if (line.compare(0, kFormat.size(), kFormat) != 0)
    throw InputError({path_, 1, 1}, "is not a results file, and is left unchanged; choose another file");
  if (line.compare(kFormat.size(), kVersion.size(), kVersion) != 0)
    throw InputError({path_, 1, static_cast<int>(kFormat.size()) + 1},
                     fmt::format("these results have another version of the format; allowed: {}{}",
                                 kVersion.substr(0, kVersion.size() - 1), kOtherFileOrAnew));
  throw InputError({path_, 1, 1},
                   fmt::format("these results answer another question ({}; now it is {}){}",
                               printable(line.substr(kFormat.size() + kVersion.size())),
                               printable(head_.substr(kFormat.size() + kVersion.size(),
                                                      head_.size() - kFormat.size() - kVersion.size() - 1)),
                               kOtherFileOrAnew));
}

void SharedResults::write_head() {
  if (ftruncate(file_, 0) != 0) fail("cannot be emptied");
  append(head_);
  complete_bytes_ = static_cast<off_t>(head_.size());
}

const std::string* SharedResults::find(std::int64_t task) const {
  const auto found = results_.find(task);
  return found == results_.end() ? nullptr : &found->second;
}

// The lock not only prevents writing: it also makes an NFS client ask the server for the file's current
// contents.
void SharedResults::refresh() {
  const Lock reading(*this, F_RDLCK);
  read_lines();
}

void SharedResults::read_lines() {
  struct stat status {};
  if (fstat(file_, &status) != 0) fail("cannot be read");
  if (status.st_nlink == 0 || status.st_size < complete_bytes_)
    throw RunError(fmt::format("{}: another process has {} this file, which was in use", printable(path_),
                               status.st_nlink == 0 ? "removed" : "truncated"));
  std::string text(static_cast<std::size_t>(status.st_size - complete_bytes_), '\0');
  for (std::size_t got = 0; got < text.size();) {
    const ssize_t n =
        pread(file_, text.data() + got, text.size() - got, complete_bytes_ + static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be read");
    if (n == 0) text.resize(got);
    got += static_cast<std::size_t>(n);
  }
  const off_t begin = complete_bytes_;
  for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    take_line(std::string_view(text).substr(at, end - at));
    complete_bytes_ = begin + static_cast<off_t>(end) + 1;
  }
}

void SharedResults::take_line(std::string_view line) {
  ++lines_;
  std::int64_t task = -1;
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), task);
  if (error != std::errc() || task < 0 || stop == line.data() + line.size() || *stop != '\t')
    throw InputError({path_, 1 + lines_, 1},
                     fmt::format("the line \"{}\" is damaged; allowed: TASK, a tab, RESULT{}",
                                 printable(line.substr(0, 40)), kOtherFileOrAnew));
  results_.try_emplace(task, line.substr(static_cast<std::size_t>(stop - line.data()) + 1));
}

bool SharedResults::claim(std::int64_t task) {
  if (find(task) != nullptr || !try_lock(F_WRLCK, kClaimed + task)) return false;
  // Another process may have added the result since find() and given up its claim.
  refresh();
  if (find(task) == nullptr) return true;
  release(task);
  return false;
}

void SharedResults::release(std::int64_t task) {
  unlock(kClaimed + task);
}

void SharedResults::add(std::int64_t task, std::string_view result) {
  if (task < 0 || result.find('\n') != std::string_view::npos)
    throw std::invalid_argument("a result must be one line of text, and its task 0 or more");
  {
    const Lock writing(*this, F_WRLCK);
    read_lines();
    if (find(task) == nullptr) {
      // Nobody else is writing, so anything after the last complete line is from a writer that has died.
      if (ftruncate(file_, complete_bytes_) != 0) fail("a torn last line cannot be cut off");
      append(fmt::format("{}\t{}\n", task, result));
      read_lines();
    }
  }
  release(task);
}

void SharedResults::append(std::string_view text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t n = write(file_, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      (void)!ftruncate(file_, complete_bytes_);
      errno = error;
      fail("cannot be written");
    }
    written += static_cast<std::size_t>(n);
  }
}

bool SharedResults::try_lock(short type, off_t byte) {
  struct flock lock = lock_of(type, byte);
  if (fcntl(file_, F_SETLK, &lock) == 0) return true;
  if (errno != EACCES && errno != EAGAIN) fail("cannot be locked");
  return false;
}

bool SharedResults::is_locked_by_others(off_t byte) {
  struct flock lock = lock_of(F_WRLCK, byte);
  if (fcntl(file_, F_GETLK, &lock) != 0) fail("cannot be locked");
  return lock.l_type != F_UNLCK;
}

void SharedResults::unlock(off_t byte) {
  struct flock lock = lock_of(F_UNLCK, byte);
  (void)fcntl(file_, F_SETLK, &lock);
}

void SharedResults::fail(const char* what) const {
  const bool no_locks = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
  throw RunError(fmt::format("{}: {}: {}{}", printable(path_), what, std::strerror(errno),
                             no_locks ? "; allowed: a file on a file system with record locks" : ""));
}

}  // namespace rehearse
