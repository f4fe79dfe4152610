// What goes over the network in the time of one optimizer step, by link.
#pragma once

#include <optional>
#include <vector>

#include "simulator/trace/asynchrony.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

struct LinkLoad {
  LinkId link = 0;  // of a class of links that carry the same, the one that stands for all
  double bytes = 0;
};

struct StepTraffic {
  double bytes = 0;             // that all ranks put on the network, each transfer once
  std::vector<LinkLoad> links;  // those that were used
};

// A step's share of what a trace carries. Asynchronous workers, of which the trace holds many rounds: what
// all of them together send in the time of a step, from the rates in `asynchrony`.
StepTraffic step_traffic(const Trace& trace, int job, const Cluster& cluster,
                         const std::optional<AsynchronyFigures>& asynchrony);

}  // namespace rehearse
