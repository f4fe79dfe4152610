// Lists the largest tensors in the memory of a rank, at any moment of a run and at its peak.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/models/memory/memory_stages.hpp"
#include "gui/models/tables/value_table.hpp"
#include "simulator/trace/tensor_rows.hpp"

namespace rehearse::gui {

// The largest tensors of a moment.
struct MomentTensors {
  bool peak = false;
  double into_step_s = 0;  // when the moment is
  std::string op;          // that makes the peak; empty: of other moments, or none
  LargestRows largest;
};

// What is live when, in the entire run.
class LiveMemory {
public:
  LiveMemory() = default;
  LiveMemory(const Run& run, const StageMemory& stage);

  bool known() const { return !steps_.empty(); }
  const MomentTensors& peak() const { return peak_; }
  // `when` is in the run's timeline. Before the first step, only what is persistent is live.
  MomentTensors at(Time when) const;

private:
  struct Step {
    LiveTensors live;
    MemoryTimeline timeline;
  };
  Time time_of(double seconds) const;

  std::shared_ptr<const Judged> judged_;  // has the programs to which the steps refer
  Time origin_ = 0;
  int rank_class_ = -1;
  std::vector<Step> steps_;
  MomentTensors peak_;
};

// Returns the table of the tensors, with a row for those that have none of their own.
TableData tensor_table(const MomentTensors& moment);
// Returns "Peak: 70.5 GiB, 12.93 s into the step, in "backward 0"", or "At the cursor: ...".
std::string moment_text(const MomentTensors& moment);

}  // namespace rehearse::gui
