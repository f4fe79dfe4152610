// Computes how busy the busiest links are over time.
#pragma once

#include <vector>

#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct LinkTimeline {
  LinkId link = 0;
  std::vector<double> bytes_per_s;  // means over equal bins of the run
};

// Returns the `count` links whose capacity is used most. Assumes that a transfer carries its bytes evenly
// from beginning to end.
std::vector<LinkTimeline> link_timelines(const Trace& trace, const Cluster& cluster, std::size_t count,
                                         std::size_t bins);

}  // namespace rehearse
