// The chain of ops and waits that sets the step time: shorten none of them, and the step ends no sooner.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/trace/metrics.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// A stretch of the path: a row of the trace under way, or (row kNoRow) a wait whose cause the trace does not
// tell.
struct PathSegment {
  std::size_t row = 0;
  double begin_s = 0, end_s = 0;
  // "forward", "backward", "optimizer" ...: computing, by pass; "gradient sync", "pipeline transfer" ...:
  // bytes on their way; "latency": a transfer's startup and latency; "server work", "data", "waiting".
  std::string kind;
};

// The path of a job's last step, from the end of the step before (breakdown.cpp's window) to its own end.
// Segments adjoin one another, so that they add up to the step. It is found backwards from the op that ends
// last: what it waited for inside its rank (causes.hpp), and of a transfer or collective the side that was
// ready last.
std::vector<PathSegment> critical_path(const Trace& trace, int job);

// Seconds of each kind, the longest first.
std::vector<std::pair<std::string, double>> seconds_by_kind(const std::vector<PathSegment>& path);

// What could be made faster. `compute` is all that devices do, `memory_bandwidth` the bandwidth of their
// memory alone.
// `host`: the bandwidth of the nodes' memory and NVMe, where optimizer state is kept there.
enum class Resource {
  compute,
  memory_bandwidth,
  intra_node_links,
  network_links,
  latency,
  servers,
  host,
  launches
};
inline constexpr std::array<std::string_view, 8> kResourceNames = {
    "compute", "memory_bandwidth", "intra_node_links", "network_links", "latency", "servers",
    "host",    "kernel_launches"};

// The kind of a segment in which a device waits for its process to issue kernels.
inline constexpr std::string_view kLaunches = "kernel launches";

// A resource at `kFaster` times its rate takes 1/1.1 of its time.
inline constexpr double kFaster = 1.1;

// The step with a resource kFaster times as fast: simulated anew, where that was cheap enough; and to first
// order.
struct WhatIf {
  Resource resource = Resource::compute;
  std::optional<double> step_time_s;
  double path_saved_s = 0;
};

// To first order, by how much sooner the step would end if a resource were kFaster times as fast: what the
// path's own segments would gain, were it still the longest path. A transfer's bytes are held up by the kind
// of link that needs the most time for them; for collectives over several nodes that is taken to be the
// network.
std::array<double, kResourceNames.size()> path_savings_s(const std::vector<PathSegment>& path,
                                                         const Trace& trace, const Cluster& cluster);

}  // namespace rehearse
