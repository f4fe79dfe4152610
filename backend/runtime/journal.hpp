// What ranks have done so far, kept where the process that started them finds it when they are gone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backend/runtime/rank_executor.hpp"

namespace rehearse {

// Memory that processes of one machine share: it outlives a rank that is killed, and goes with the last of
// them. Only what is written takes memory. Children of who makes it have it too.
class Journal {
public:
  // Room for so many repeats of the schedule. RunError if there is no memory.
  Journal(const Schedule& schedule, int repeats);
  // The one that another process has made for the same schedule, and named so. RunError if it is not there.
  Journal(const Schedule& schedule, int repeats, const std::string& name);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::string& name() const { return name_; }  // good while its process lives; empty: it has none

  // By any thread of the rank (over all roles), as it has ended an op.
  void write(int rank, const RankSpan& span);
  // By a rank that tells losses: before it begins; and each, in order of steps.
  void expect_losses(int rank);
  void write_loss(int rank, double loss);

  // By rank 0: all ranks have it; it has the result of the whole run.
  void share();
  bool shared() const;
  void close();
  bool closed() const;

  // Once the rank has ended: whole spans, each stream's in its order.
  std::vector<RankSpan> read(int rank) const;
  // By rank, its losses of the first steps, of which all are known that are expected; empty if it tells none.
  std::vector<std::vector<double>> losses() const;

private:
  struct Entry;
  struct Head;
  Head& head(int rank) const;
  void lay_out(const Schedule& schedule, int repeats);
  void map(int file);
  double* losses_of(int rank) const;

  std::string name_;
  std::vector<std::size_t> first_, room_;  // by rank, in entries
  std::byte* memory_ = nullptr;
  int file_ = -1;
  std::size_t bytes_ = 0, heads_bytes_ = 0, losses_at_ = 0, most_losses_ = 0;
};

// The steps that all ranks have finished, of `repeats`, and their spans by rank. Of workers that do not wait
// for each other the rounds, whose answers are with their servers' iterations.
struct FinishedSteps {
  int steps = 0;
  std::vector<std::vector<RankSpan>> spans;
};
FinishedSteps finished_steps(const Schedule& schedule, std::vector<std::vector<RankSpan>> by_rank,
                             int repeats);

}  // namespace rehearse
