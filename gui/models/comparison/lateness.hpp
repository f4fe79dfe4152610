// Finds the ranks that arrive last at collectives, and how long the others wait for them.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "gui/models/timeline/time_scale.hpp"

namespace rehearse::gui {

struct Lateness {
  double seconds = 0;  // within the process's window; overlapping waits count once
  std::string at;      // kind of op that loses the most time: "all-reduce bucket"; empty: none
};
// Returns one entry per process. Transfers with the same name that end together on several processes of a
// pipeline stage are one collective. A process is late by its arrival minus the median arrival, without the
// time during which the process with the median arrival computes. Returns partial results once `cancelled` is
// set.
std::vector<Lateness> lateness(const Timeline& timeline, const std::vector<TimeRange>& windows,
                               const std::atomic<bool>& cancelled);

}  // namespace rehearse::gui
