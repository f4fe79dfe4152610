// How busy the busiest links are as time goes by.
#pragma once

#include <vector>

#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct LinkTimeline {
  LinkId link = 0;
  std::vector<double> bytes_per_s;  // means over equal bins of the run
};

// The `count` links whose capacity is used most. A transfer is taken to carry its bytes evenly from begin to
// end.
std::vector<LinkTimeline> link_timelines(const Trace& trace, const Cluster& cluster, std::size_t count,
                                         std::size_t bins);

}  // namespace rehearse
