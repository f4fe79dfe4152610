// A run as a file: a Chrome trace (report.hpp) that holds its scenario, so that it can be predicted anywhere,
// and how it was measured.
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
  std::optional<Measurement> measured;  // nothing: the trace was predicted
};

// Writes a measured run with the figures of its median step; gzipped if `path` ends in ".gz". The trace has
// one job of one phase, one class for each rank, times from 0 on. RunError if it cannot be written, failed or
// has no step behind its warm-up.
void write_run(const RecordedRun& run, const std::string& path);

// Reads what write_run and `simulate --trace` write: times to the nanosecond, everything else as it was. Of a
// trace that was saved by another program only the events and `otherData` must still be there. InputError
// names the file and what is wrong with it: not JSON, no trace of ours, a schedule that is not the one that
// write_schedule gives for its scenario, spans that the schedule does not have.
RecordedRun read_run(const std::string& path);
RecordedRun parse_run(std::string_view json, const std::string& path);

}  // namespace rehearse
