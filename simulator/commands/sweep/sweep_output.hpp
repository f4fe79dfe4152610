// Manages the file that receives the lines of a sweep: locks it, reads it and continues it. A kill at any
// moment leaves complete lines and at most one torn one, which the next run cuts off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/sweep/sweep_row.hpp"

namespace rehearse {

// The complete lines of a file. Throws InputError for a line that is not of this sweep, for a point that
// occurs twice, and for a file that is not a sweep's.
struct SweepLines {
  std::vector<SweepRow> rows;
  std::vector<std::string> lines;  // text of `rows`; each with its line feed
  std::size_t complete_bytes = 0;  // anything after them is torn
};
SweepLines parse_sweep_lines(const SweepRows& rows, const std::string& text, const std::string& path);
// Returns nothing if the file does not exist. Does not lock it, so a line that is being written counts as
// torn.
SweepLines read_sweep_lines(const SweepRows& rows, const std::string& path);

class SweepOutput {
public:
  // Opens standard output if `path` is empty; nothing is read then. Retains the contents of the file except
  // for a torn last line; with `force_new`, discards them. Throws InputError if another process has the file
  // open as its sweep's output or it is not this sweep's, and RunError if it cannot be written.
  SweepOutput(const SweepRows& rows, const std::string& path, bool force_new);
  SweepOutput(const SweepOutput&) = delete;
  SweepOutput& operator=(const SweepOutput&) = delete;
  ~SweepOutput();

  const std::vector<SweepRow>& found() const { return found_; }  // rows that the file contained
  void append(const std::string& line);                          // by write(2); throws RunError
  void sync();                                                   // writes to the disk
  SweepLines lines(const SweepRows& rows) const;                 // reads again, without giving up the lock

private:
  void lock();
  void read_and_cut(const SweepRows& rows);

  std::string path_;
  int file_ = -1;
  bool regular_ = false;
  std::vector<SweepRow> found_;
};

// Returns the existing files FILE.0, FILE.1, ... of the ranks of a run under mpirun or Slurm.
std::vector<std::string> rank_files(const std::string& path);

// Appends the lines of rank files for points that are not `done` to `output`, marks these points, and removes
// the files. Returns the rows appended. Throws InputError if a rank is still running or a file is not this
// sweep's.
std::vector<SweepRow> merge_rank_files(const SweepRows& rows, const std::string& path, SweepOutput& output,
                                       std::vector<bool>& done);

// Removes the rank files that are outputs of sweeps, whichever sweep that is.
void remove_rank_files(const std::string& path);

}  // namespace rehearse
