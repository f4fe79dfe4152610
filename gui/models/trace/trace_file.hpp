// Reads Chrome Trace Event files into timelines: those of Rehearse and of PyTorch's profiler (Kineto).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/timeline/timeline.hpp"
#include "gui/models/work/progress.hpp"

namespace rehearse::gui {

// Takes the first part of a trace as a timeline.
using TakeBeginning = std::function<void(Timeline)>;
// A shorter trace is there before anybody could look at its first part.
inline constexpr std::size_t kFirstSpans = 200'000;

// Reads a file (.json or .json.gz) in one pass; a plain one can be larger than memory. Leaves out what is
// broken, cut off or not understood, and reports it in Timeline::problems. Throws InputError if there is no
// such file, no JSON, or no event in it. Of a long trace, passes the first spans to `take_beginning`, on the
// calling thread, and goes on reading.
Timeline read_timeline(const std::string& path, Progress& progress, const TakeBeginning& take_beginning = {});
// Like read_timeline(), but for a text; `name` appears in messages.
Timeline parse_timeline(std::string_view text, const std::string& name);

// The rank that a profiler's trace belongs to and the number of ranks (distributedInfo); -1: not known.
struct RankOfProfile {
  int rank = -1, world_size = -1;
};
RankOfProfile rank_of(const Timeline& timeline);
// Merges the ranks of one job, each from its own file, into one timeline. Aligns them by their common clock
// (baseTimeNanoseconds, or the same epoch); if they have none, each begins at 0, which is reported as a
// problem.
Timeline merged(std::vector<Timeline> ranks);

}  // namespace rehearse::gui
