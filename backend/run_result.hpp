// What `rehearse-run` writes of a run: text or JSON for people and programs, and the record for `rehearse
// validate`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/runs/real_run.hpp"
#include "simulator/trace/measurement.hpp"

namespace rehearse {

struct RunOutput {
  std::string format = "text";  // text, json
  std::string trace;            // where to write the record; empty: nowhere
};

// What commands that carry out a scenario are asked.
struct ScenarioArguments {
  std::string scenario;                // a path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  RunOutput output;
  bool check_replicas = false;  // RealRunOptions
  double patience_s = 60;
  std::string command;  // as it was called, for the record
};

// How the run came about, as far as one process knows before it began.
Measurement describe_run(const Scenario& scenario, const std::string& executor, const std::string& transport,
                         const std::string& command);

// The result first: it is not lost if the record cannot be written (RunError).
void write_run_result(const RunOutput& output, const Scenario& scenario, const Plan& plan, RealRunResult run,
                      Measurement measurement, std::ostream& out);

// A run that failed with `cause`: the record of the steps that all ranks had finished, if one is wanted and
// there are any. Returns `cause` with what became of them.
std::string write_unfinished_run(const RunOutput& output, const Scenario& scenario, const Plan& plan,
                                 const Journal& journal, Measurement measurement, const std::string& cause);

}  // namespace rehearse
