// Records what ranks have done so far, where the process that started them can read it after they are gone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backend/runtime/rank_executor.hpp"

namespace rehearse {

// Memory that processes of one machine share. It survives a rank that is killed and is freed when the last of
// the processes ends. Only pages that are written take up memory. Child processes of its creator inherit it.
class Journal {
public:
  // Makes room for `repeats` repetitions of the schedule. Throws RunError if there is no memory.
  Journal(const Schedule& schedule, int repeats);
  // Opens the journal that another process has made for the same schedule under this name. Throws RunError if
  // it does not exist.
  Journal(const Schedule& schedule, int repeats, const std::string& name);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // The name is valid while the process that made it lives; empty: the journal has no name.
  const std::string& name() const { return name_; }

  // Records the end of an op; may be called by any thread of the rank (numbered over all roles).
  void write(int rank, const RankSpan& span);
  // A rank that reports losses calls expect_losses() before it begins, and write_loss() for each loss in
  // order of steps.
  void expect_losses(int rank);
  void write_loss(int rank, double loss);

  // Rank 0 calls share() once all ranks have opened the journal, and close() once it has the result of the
  // complete run.
  void share();
  bool shared() const;
  void close();
  bool closed() const;

  // Returns the completely written spans of a rank that has ended, ordered by stream and, in each stream, by
  // time.
  std::vector<RankSpan> read(int rank) const;
  // Returns the losses by rank, for those first steps for which all ranks that report losses have done so;
  // empty for ranks that report none.
  std::vector<std::vector<double>> losses() const;

private:
  struct Entry;
  struct Head;
  Head& head(int rank) const;
  void lay_out(const Schedule& schedule, int repeats);
  void map(int file);
  double* losses_of(int rank) const;

  std::string name_;
  std::vector<std::size_t> first_, room_;  // by rank: the index of its first entry, and its number of entries
  std::byte* memory_ = nullptr;
  int file_ = -1;
  std::size_t bytes_ = 0, heads_bytes_ = 0, losses_at_ = 0, most_losses_ = 0;
};

// The number of steps, of `repeats`, that all ranks have finished, and their spans by rank. Where workers do
// not wait for each other, steps are rounds, and the servers' spans that answer a round are those of the
// iteration with its number.
struct FinishedSteps {
  int steps = 0;
  std::vector<std::vector<RankSpan>> spans;
};
FinishedSteps finished_steps(const Schedule& schedule, std::vector<std::vector<RankSpan>> by_rank,
                             int repeats);

}  // namespace rehearse
