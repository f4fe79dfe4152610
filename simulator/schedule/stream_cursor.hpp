// Tracks the position of a stream in its ops, and what its current op waits for. The checker, the engine and
// the real ranks share this order; each of them waits in a different way.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/schedule/program_index.hpp"

namespace rehearse {

// A counter of a rank: name and number.
using CounterAddress = std::pair<std::string, int>;
using Counters = std::map<CounterAddress, double>;  // counters that have been raised

class StreamCursor {
public:
  StreamCursor() = default;  // without a stream: at the end
  // Starts at the first op of `step`; the program and its index must outlive the cursor.
  StreamCursor(const Program& program, const ProgramIndex& index, int stream, int step = 0);

  int step() const { return step_; }
  bool at_end() const { return ops_ == nullptr || next_ == ops_->size(); }  // of the step's ops
  // Returns the index of the op that is next or running. Must not be called at the end.
  int op() const { return (*ops_)[next_]; }
  const Op& current() const { return program_->ops[op()]; }
  int iteration() const { return iterations_.empty() ? 0 : iterations_.back(); }  // of the innermost repeat
  bool endless() const { return index_->per_step[op()] == 0; }  // the op is in a repeat without end

  // Moves past the current op: into, around or out of repeats.
  void advance();
  // Moves from the end of a step to the first op of the next.
  void next_step();

  // `done` below: by op of the program, how often it has ended since the run began. Returns how often
  // `dependency.op` must have ended before the current op can begin.
  long required(const Dependency& dependency, const std::vector<long>& done) const;
  // Returns the first dependency that is not met; null: none.
  const Dependency* unmet(const std::vector<long>& done) const;

  // Returns the counter of the current op, a signal or wait_until.
  CounterAddress counter() const { return {current().counter.name, current().counter.at(iteration())}; }
  // For a wait_until: return the value that it waits for, and whether the rank's counters have reached it.
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
