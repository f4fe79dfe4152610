// Chrome Trace Event files as timelines: ours, and those of PyTorch's profiler (Kineto).
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

// Of work on another thread.
struct Progress {
  std::atomic<double> share = 0;        // of the whole, 0 to 1
  std::atomic<bool> cancelled = false;  // set by whoever does not want it any more
};

// Thrown by work that was cancelled.
struct Cancelled {};

// Reads a file (.json or .json.gz; larger than memory if it is not gzipped) in one pass. What is broken, cut
// off or not understood is left out and told in Timeline::problems. InputError: no such file, no JSON, or not
// one event in it.
Timeline read_timeline(const std::string& path, Progress& progress);
// The same of a text; `name` stands in messages.
Timeline parse_timeline(std::string_view text, const std::string& name);

// The rank that a profiler's trace is of (distributedInfo), and of how many; -1: not known.
struct RankOfProfile {
  int rank = -1, world_size = -1;
};
RankOfProfile rank_of(const Timeline& timeline);
// The ranks of one job, each of which was written to a file of its own, as one timeline: by the clock that
// they share (baseTimeNanoseconds, or the same epoch), else all from 0 on, which is told as a problem.
Timeline merged(std::vector<Timeline> ranks);

}  // namespace rehearse::gui
