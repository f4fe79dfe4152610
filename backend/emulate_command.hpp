// `rehearse-run emulate`: the scenario's cluster out of network namespaces on this machine, and its schedule
// for real across it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/run_result.hpp"

namespace rehearse {

struct EmulateArguments {
  std::string scenario;                // a path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  RunOutput output;
  bool check_replicas = false;  // RealRunOptions
  double patience_s = 60;
  std::string command;  // as it was called, for the record
};

// RunError in one line if this machine cannot (no root, no iproute2). Whatever ends the process takes the
// network down.
void run_emulate(const EmulateArguments& arguments, std::istream& in, std::ostream& out);

}  // namespace rehearse
