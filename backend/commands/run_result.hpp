// Writes the results of `rehearse-run`: text or JSON for people and programs, and the record for `rehearse
// validate`.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/runs/real_run.hpp"
#include "simulator/trace/measurement.hpp"

namespace rehearse {

struct RunOutput {
  std::string format = "text";  // text or json
  std::string trace;            // path of the record; empty: none
};

// Arguments of the commands that run a scenario.
struct ScenarioArguments {
  std::string scenario;                // a path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  RunOutput output;
  bool check_replicas = false;  // see RealRunOptions
  bool oversubscribe = false;   // ranks may crowd this machine (run_guard.hpp), or share a GPU
  double patience_s = 60;
  std::string checkpoints;   // the folder to which checkpoints are written, and from which a run continues;
                             // empty: none
  int kept_checkpoints = 2;  // complete ones that are not removed
  std::string command;       // the command line, for the record
};

// Returns a description of the run, with what one process knows before it begins.
Measurement describe_run(const Scenario& scenario, const std::string& executor, const std::string& transport,
                         const std::string& command);

// Writes the result first, so that it is not lost if the record cannot be written. Throws RunError in that
// case, and at the end if replicas ended with different weights.
void write_run_result(const RunOutput& output, const Scenario& scenario, const Plan& plan, RealRunResult run,
                      Measurement measurement, std::ostream& out);

// Records the steps that all ranks of a failed run had finished, if there are any. Returns `cause`, followed
// by what became of these steps.
std::string write_unfinished_run(const RunOutput& output, const Scenario& scenario, const Plan& plan,
                                 const Journal& journal, Measurement measurement, const std::string& cause);

}  // namespace rehearse
