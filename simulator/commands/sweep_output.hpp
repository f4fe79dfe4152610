// The file that a sweep's lines go to: locked, read, continued. A kill at any moment leaves whole lines and
// at most one torn one, which the next run cuts off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/sweep_row.hpp"

namespace rehearse {

// The complete lines of a file; those of points that `rows` has already are left out. InputError for a line
// that is none of this sweep, and for a file that is no sweep's.
struct SweepLines {
  std::vector<SweepRow> rows;
  std::vector<std::string> lines;  // of rows; each with its line feed
  std::size_t complete_bytes = 0;  // what is behind them is torn
};
SweepLines parse_sweep_lines(const SweepRows& rows, const std::string& text, const std::string& path);
// Nothing if the file is not there. Does not lock it: a line that is being written counts as torn.
SweepLines read_sweep_lines(const SweepRows& rows, const std::string& path);

class SweepOutput {
public:
  // Standard output if `path` is empty: nothing is read then. What stands in the file is kept, but for a torn
  // last line; with `force_new` it is thrown away. InputError if another process has the file open as its
  // sweep's output or it is not this sweep's; RunError if it cannot be written.
  SweepOutput(const SweepRows& rows, const std::string& path, bool force_new);
  SweepOutput(const SweepOutput&) = delete;
  SweepOutput& operator=(const SweepOutput&) = delete;
  ~SweepOutput();

  const std::vector<SweepRow>& found() const { return found_; }  // what stood there
  void append(const std::string& line);                          // one write(2); RunError
  void sync();                                                   // to the disk
  SweepLines lines(const SweepRows& rows) const;                 // read again, without giving up the lock

private:
  void lock();
  void read_and_cut(const SweepRows& rows);

  std::string path_;
  int file_ = -1;
  bool regular_ = false;
  std::vector<SweepRow> found_;
};

// FILE.0, FILE.1, ... of the ranks of a run under mpirun or Slurm, those that are there.
std::vector<std::string> rank_files(const std::string& path);

// Appends to `output` what the rank files hold of points that are not `done`, marks them, and removes the
// files. Returns the rows appended. InputError if a rank is still at work or a file is not this sweep's.
std::vector<SweepRow> merge_rank_files(const SweepRows& rows, const std::string& path, SweepOutput& output,
                                       std::vector<bool>& done);

// Removes the rank files that are outputs of sweeps, of whichever.
void remove_rank_files(const std::string& path);

}  // namespace rehearse
