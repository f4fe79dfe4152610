// Where a stream of a program stands in its ops, and what the op it has come to waits for: one order for the
// checker, the engine and the real ranks, each of which has its own way of waiting.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/schedule/program_index.hpp"

namespace rehearse {

// A counter of a rank: name and number.
using CounterAddress = std::pair<std::string, int>;
using Counters = std::map<CounterAddress, double>;  // those that have been raised

class StreamCursor {
public:
  StreamCursor() = default;  // of no stream: at the end
  // At the first op of `step`; the program and its index must outlive the cursor.
  StreamCursor(const Program& program, const ProgramIndex& index, int stream, int step = 0);

  int step() const { return step_; }
  bool at_end() const { return ops_ == nullptr || next_ == ops_->size(); }  // of the step's ops
  // The op that comes next, or is under way: its number in the program. Not at the end.
  int op() const { return (*ops_)[next_]; }
  const Op& current() const { return program_->ops[op()]; }
  int iteration() const { return iterations_.empty() ? 0 : iterations_.back(); }  // of the innermost repeat
  bool endless() const { return index_->per_step[op()] == 0; }  // the op is in a repeat without end

  // Past the current op: into, around or out of repeats.
  void advance();
  // From the end of a step to the first op of the next.
  void next_step();

  // What the current op waits for; `done`: by op of the program, how often it has ended since the run began.
  // How often `dependency.op` must have ended before it may begin.
  long required(const Dependency& dependency, const std::vector<long>& done) const;
  // The first dependency that is not met; null: none.
  const Dependency* unmet(const std::vector<long>& done) const;

  // Of a signal or wait_until.
  CounterAddress counter() const { return {current().counter.name, current().counter.at(iteration())}; }
  // Of a wait_until: the value for which it waits, and whether the rank's counters let it go on.
  double awaited_value() const;
  bool reached(const Counters& counters) const;

private:
  const Program* program_ = nullptr;
  const ProgramIndex* index_ = nullptr;
  const std::vector<int>* ops_ = nullptr;  // of the stream
  std::size_t next_ = 0;
  int step_ = 0;
  std::vector<int> iterations_;  // of the open repeats
};

}  // namespace rehearse
