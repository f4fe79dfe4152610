// Times of messages and collectives over their sizes, as a link profile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/calibrate/fit_ranges.hpp"
#include "backend/calibrate/measure_compute.hpp"

namespace rehearse {

// What is timed. Collectives that go round a ring or from each to each: all-reduce, reduce-scatter,
// all-gather, all-to-all.
struct LinkTrial {
  Reach reach = Reach::in_node;
  int ranks = 0;  // 0: a message between two ranks
  CollectiveKind kind = CollectiveKind::all_reduce;
  // Seconds of one transfer of `bytes` (as in Collective::bytes), measured by this rank; the others keep in
  // step by what the function sends them.
  std::function<double(double bytes)> time_s;
};

struct MeasuredLink {
  LinkCurve curve;
  std::vector<SizedSample> samples;  // by the bytes of a message of a step; of one step
};

// From 64 bytes to 64 MiB in steps of sqrt(2), in `most_s` seconds; the largest sizes are left out where one
// run would take more than their share. Then fit_ranges(). The times of collectives are divided by their
// steps, as ring_cost() counts them. std::invalid_argument for other kinds.
MeasuredLink measure_link(const LinkTrial& trial, double most_s, const Progress& progress);

}  // namespace rehearse
