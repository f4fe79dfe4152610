// Finds the ranks that arrive last at collectives, and how long the others wait for them.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "gui/models/time_scale.hpp"

namespace rehearse::gui {

struct Lateness {
  double seconds = 0;  // in its window, each instant once
  std::string at;      // the kind of op at which most of it is lost: "all-reduce bucket"; empty: nowhere
};
// Of each process. Transfers of one name that end together on several processes of a stage are one
// collective. A process is late to it by its arrival less the median one, as far as the process of the median
// arrival computes nothing in between. Returns what it has once `cancelled`.
std::vector<Lateness> lateness(const Timeline& timeline, const std::vector<TimeRange>& windows,
                               const std::atomic<bool>& cancelled);

}  // namespace rehearse::gui
