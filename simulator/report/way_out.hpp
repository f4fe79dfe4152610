// What to change in a scenario to lose less time or memory: keys that exist, with values that the scenario
// allows.
#pragma once

#include <string>
#include <vector>

#include "simulator/report/report.hpp"

namespace rehearse {

struct WayOut {
  std::string why;                // "twice the global batch would leave 7 of 199"
  std::vector<std::string> sets;  // "training.global_batch=3072", for --set; may be empty
};

// "; WHY (try --set KEY=VALUE)", or nothing if there is no way out.
std::string told(const WayOut& way);

WayOut less_bubble(const Result& result);
WayOut less_gradient_sync(const Result& result);
WayOut less_pipeline_transfer(const Result& result);
WayOut less_compute(const Result& result);
WayOut less_waiting(const Result& result);
WayOut less_memory(const Result& result);

}  // namespace rehearse
