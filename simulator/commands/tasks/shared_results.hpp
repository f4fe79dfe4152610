// Manages one file of results of numbered tasks, which several processes, also on several machines, write
// together.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "simulator/commands/tasks/ranks.hpp"

namespace rehearse {

// Ends messages about a file that cannot be continued.
inline constexpr const char* kOtherFileOrAnew = "; choose another file, or start over with --force-new";

// The file starts with a head line, "rehearse-results\tVERSION\tIDENTITY". One line "TASK\tRESULT" for each
// task follows, in the order in which the tasks ended. Guarantees:
// - Lines are appended completely, under a lock, and are never changed or removed. If a kill or a full disk
//   tears the last one, nobody reads it, and the next process that appends a line cuts it off.
// - A task has one result, the first in the file, for all processes and after every restart.
// - A task is claimed by at most one process, and a task that has a result cannot be claimed. A claim ends
//   with its process, however the process ends.
// - A file that contains the results of another question, or is not a file of results, is not written to.
// Once add() has returned, a result survives the death of any process. It does not survive a machine or a
// file server that fails before it has written the file to its disk.
//
// Claims and locks are POSIX record locks on bytes far beyond the end of the file. They work between machines
// on NFS, forked children do not inherit them, and they leave no files behind. However, a process loses all
// its locks on a file when it closes *any* descriptor of that file: while an object exists, nothing else in
// the process may open its file, not even a second object. Children may only call find().
class SharedResults {
public:
  // `identity` is one line of text that distinguishes this question from others. Rank 0 creates the file;
  // other ranks wait up to `patience_s` seconds for it. A process that is started by hand is rank 0 of 1: any
  // number of them may come and go at any time.
  // With `force_new`, rank 0 discards the contents of the file, whatever question the results belong to,
  // unless another process has the file open. All ranks then wait for each other, so that none takes an old
  // result for a new one.
  // Throws InputError for the results of another question, a damaged line, a file that is not a file of
  // results and, with `force_new`, for a file in use. Throws RunError if the file cannot be written or
  // locked, or if the wait takes too long.
  SharedResults(const std::string& path, const std::string& identity, bool force_new = false,
                Ranks ranks = ranks_of_this_run(), double patience_s = 120);
  SharedResults(const SharedResults&) = delete;
  SharedResults& operator=(const SharedResults&) = delete;
  ~SharedResults();

  // Returns the result as of the last call of refresh(), claim() or add(); null if there is none. The text
  // stays at its address while the object exists.
  const std::string* find(std::int64_t task) const;
  std::size_t size() const { return results_.size(); }

  // Reads what other processes have added. Throws InputError for a damaged line, and RunError if the file was
  // removed or truncated.
  void refresh();
  // Returns whether this process now holds the claim to the task. If not, another process holds it, or the
  // task has a result, which find() then returns.
  bool claim(std::int64_t task);
  void release(std::int64_t task);  // gives up the claim
  // Appends the result of a task, one line of text, and gives up the claim. If the task already has a result,
  // `result` is dropped; that happens only if a file server has lost the claim. Throws RunError if the file
  // cannot be written, in which case no part of the line remains.
  void add(std::int64_t task, std::string_view result);

private:
  class Lock;
  void open_file(double patience_s);
  void begin_anew(double patience_s);
  bool has_head();
  void write_head();
  void await_head(double patience_s);
  void read_lines();
  void take_line(std::string_view line);
  void append(std::string_view text);
  bool try_lock(short type, off_t byte);
  bool is_locked_by_others(off_t byte);
  void unlock(off_t byte);
  [[noreturn]] void fail(const char* what) const;

  std::string path_, head_;
  Ranks ranks_;
  int file_ = -1;
  off_t complete_bytes_ = 0;  // complete lines read so far, including the head
  int lines_ = 0;             // read so far, excluding the head
  std::unordered_map<std::int64_t, std::string> results_;
};

}  // namespace rehearse
