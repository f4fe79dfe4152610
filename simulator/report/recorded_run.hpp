// Writes and reads a run as a file: a Chrome trace (report.hpp) with its scenario, so that it can be
// predicted anywhere, and with how it was measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/measurement.hpp"

namespace rehearse {

struct RecordedRun {
  Scenario scenario;
  Plan plan;  // write_schedule(scenario); the trace's run has its schedule
  Trace trace;
  std::optional<Measurement> measured;  // nullopt: the trace was predicted
  // The plan and the trace are of steps after a checkpoint, of which the figures of a step have only a share.
  bool after_checkpoint = false;
};

// Writes a measured run with the figures of its median step; gzipped if `path` ends in ".gz". The trace has
// one job of one phase, one class for each rank, and times from 0 on. Throws RunError if it cannot be
// written, if the run failed, or if it has no step after its warm-up.
void write_run(const RecordedRun& run, const std::string& path);

// Reads what write_run and `simulate --trace` write: times are exact to the nanosecond, everything else is
// unchanged. If another program saved the trace, only the events and `otherData` must still be there. Throws
// InputError, naming the file and what is wrong with it: not JSON, not a trace of Rehearse, a schedule that
// differs from the one that write_schedule returns for its scenario, or spans that the schedule does not
// have.
RecordedRun read_run(const std::string& path);
RecordedRun parse_run(std::string_view json, const std::string& path);

}  // namespace rehearse
