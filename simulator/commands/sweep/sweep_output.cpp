#include "simulator/commands/sweep/sweep_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"
#include "simulator/commands/tasks/shared_results.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw RunError(fmt::format("{}: {}: {}", printable(path), what, std::strerror(errno)));
}

// Far longer than any row, however long its error is.
constexpr std::size_t kMostLineBytes = 1u << 20;

// Reads a file, but stops once it has more than `most_lines` lines. Throws InputError for a line that is far
// too long.
std::string read_all(int file, const std::string& path, std::int64_t most_lines) {
  std::string text;
  std::int64_t lines = 0;
  std::size_t line_begin = 0;
  std::vector<char> buffer(1u << 20);
  for (;;) {
    const ssize_t n = pread(file, buffer.data(), buffer.size(), static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path, "cannot be read");
    if (n == 0) return text;
    for (ssize_t i = 0; i < n; ++i) {
      if (buffer[static_cast<std::size_t>(i)] != '\n') continue;
      ++lines;
      line_begin = text.size() + static_cast<std::size_t>(i) + 1;
    }
    text.append(buffer.data(), static_cast<std::size_t>(n));
    if (lines > most_lines) return text;  // the parser reports the excess line
    if (line_begin + kMostLineBytes < text.size())
      throw InputError({path, static_cast<int>(lines) + 1, 1},
                       fmt::format("the line is longer than 1 MiB: no sweep wrote it{}", kOtherFileOrAnew));
  }
}

}  // namespace

SweepLines parse_sweep_lines(const SweepRows& rows, const std::string& text, const std::string& path) {
  SweepLines found;
  const std::string header = rows.header();
  const std::size_t first_end = text.find('\n');
  if (first_end == std::string::npos) {
    // A kill may have torn the very first line; any other text is not the output of a sweep.
    const std::string front = rows.front();
    const std::size_t shared = std::min(front.size(), text.size());
    if (text.compare(0, shared, front, 0, shared) != 0)
      throw InputError({path, 1, 1}, fmt::format("is not the output of this sweep{}", kOtherFileOrAnew));
    return found;
  }
  if (text.compare(0, header.size(), header) != 0)
    throw InputError({path, 1, 1},
                     fmt::format("is not the output of this sweep: its columns are not those of "
                                 "the keys varied here{}",
                                 kOtherFileOrAnew));
  found.complete_bytes = header.size();
  std::set<std::int64_t> seen;
  int number = header.empty() ? 1 : 2;
  for (std::size_t at = header.size(), end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    try {
      const SweepRow row = rows.parse(std::string_view(text).substr(at, end - at));
      if (!seen.insert(row.point).second)
        throw std::invalid_argument(fmt::format("point {} is in the file already", row.point));
      found.rows.push_back(row);
      found.lines.push_back(text.substr(at, end + 1 - at));
    } catch (const std::invalid_argument& why) {
      throw InputError({path, number, 1}, fmt::format("the sweep cannot continue from this line: {}{}",
                                                      why.what(), kOtherFileOrAnew));
    }
    ++number;
    found.complete_bytes = end + 1;
  }
  return found;
}

SweepLines read_sweep_lines(const SweepRows& rows, const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return {};
  if (file < 0) fail(path, "cannot be read");
  try {
    const std::string text = read_all(file, path, rows.most_lines());
    close(file);
    return text.empty() ? SweepLines{} : parse_sweep_lines(rows, text, path);
  } catch (...) {
    close(file);
    throw;
  }
}

SweepOutput::SweepOutput(const SweepRows& rows, const std::string& path, bool force_new) : path_(path) {
  if (path.empty()) {
    path_ = "standard output";
    file_ = STDOUT_FILENO;
    append(rows.header());
    return;
  }
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0) fail(path, "cannot be written");
  try {
    struct stat status {};
    regular_ = fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
    if (regular_) {
      lock();
      if (force_new && ftruncate(file_, 0) != 0) fail(path, "cannot be emptied");
      read_and_cut(rows);
    } else {
      append(rows.header());
    }
  } catch (...) {
    close(file_);
    throw;
  }
}

SweepOutput::~SweepOutput() {
  if (file_ > STDERR_FILENO) close(file_);
}

// The lock belongs to the process, not to the open file: workers inherit the file, but do not hold the lock
// after us.
void SweepOutput::lock() {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_, F_SETLK, &whole) == 0) return;
  if (errno == EACCES || errno == EAGAIN) {
    struct flock holder = whole;
    const bool known = fcntl(file_, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0;
    throw InputError({path_}, fmt::format("another sweep is writing this file{}; allowed: one at a time",
                                          known ? fmt::format(" (process {})", holder.l_pid) : ""));
  }
  // Some network file systems do not support locks.
  if (errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP) fail(path_, "cannot be locked");
}

// Does not reopen the file by its name: closing any descriptor of the file would give up the lock.
SweepLines SweepOutput::lines(const SweepRows& rows) const {
  const std::string text = read_all(file_, path_, rows.most_lines());
  return text.empty() ? SweepLines{} : parse_sweep_lines(rows, text, path_);
}

void SweepOutput::read_and_cut(const SweepRows& rows) {
  const std::string text = read_all(file_, path_, rows.most_lines());
  std::size_t kept = 0;
  if (!text.empty()) {
    SweepLines lines = parse_sweep_lines(rows, text, path_);
    kept = lines.complete_bytes;
    found_ = std::move(lines.rows);
  }
  if (kept < text.size() && ftruncate(file_, static_cast<off_t>(kept)) != 0)
    fail(path_, "an incomplete last line cannot be removed");
  if (kept == 0) append(rows.header());
}

void SweepOutput::append(const std::string& line) {
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = write(file_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EPIPE && file_ == STDOUT_FILENO) throw ReaderGone();
    if (n <= 0) fail(path_, "cannot be written");
    written += static_cast<std::size_t>(n);  // less than all on a full disk: the next write reports this
  }
}

void SweepOutput::sync() {
  if (regular_ && fsync(file_) != 0) fail(path_, "cannot be written");
}

std::vector<std::string> rank_files(const std::string& path) {
  std::vector<std::pair<long, std::string>> found;
  const fs::path whole(path);
  const std::string front = whole.filename().string() + ".";
  std::error_code error;
  const fs::path folder = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() <= front.size() || name.size() > front.size() + 9 ||
        name.compare(0, front.size(), front) != 0)
      continue;
    const std::string digits = name.substr(front.size());
    if (digits.find_first_not_of("0123456789") == std::string::npos)
      found.emplace_back(std::stol(digits), path + "." + digits);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [rank, name] : found) paths.push_back(std::move(name));
  return paths;
}

std::vector<SweepRow> merge_rank_files(const SweepRows& rows, const std::string& path, SweepOutput& output,
                                       std::vector<bool>& done) {
  std::vector<SweepRow> merged;
  for (const std::string& name : rank_files(path)) {
    const SweepOutput held(rows, name, false);  // keeps the rank out while its file is removed
    const SweepLines lines = held.lines(rows);
    for (std::size_t i = 0; i < lines.rows.size(); ++i) {
      const SweepRow& row = lines.rows[i];
      if (done[static_cast<std::size_t>(row.point)]) continue;
      output.append(lines.lines[i]);
      done[static_cast<std::size_t>(row.point)] = true;
      merged.push_back(row);
    }
    output.sync();  // before the only other copy is removed
    if (unlink(name.c_str()) != 0) fail(name, "cannot be removed after merging");
  }
  return merged;
}

void remove_rank_files(const std::string& path) {
  for (const std::string& name : rank_files(path)) {
    std::string front(10, '\0');
    std::ifstream(name, std::ios::binary).read(front.data(), static_cast<std::streamsize>(front.size()));
    const bool of_a_sweep = front.rfind("point,", 0) == 0 || front.rfind("{\"sweep\":", 0) == 0;
    if (of_a_sweep && unlink(name.c_str()) != 0) fail(name, "cannot be removed");
  }
}

}  // namespace rehearse
