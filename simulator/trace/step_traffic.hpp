// Computes the network traffic in the time of one optimizer step, by link.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "simulator/trace/asynchrony.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct LinkLoad {
  LinkId link = 0;  // the representative of a class of links that carry the same bytes
  double bytes = 0;
};

struct StepTraffic {
  double bytes = 0;             // put on the network by all ranks; each transfer counts once
  std::vector<LinkLoad> links;  // links that were used
};

// Returns what asynchronous workers and their servers sent over each link, in bytes/s, in the window of
// `figures`: never more than the link can carry.
std::map<int, double> window_traffic(const Trace& trace, int job, const Cluster& cluster,
                                     const AsynchronyFigures& figures);

// Returns a step's share of the traffic of a trace. For asynchronous workers, of which the trace has many
// rounds: what all of them together send in the time of a step, from the rates in `asynchrony`.
StepTraffic step_traffic(const Trace& trace, int job, const Cluster& cluster,
                         const std::optional<AsynchronyFigures>& asynchrony);

}  // namespace rehearse
