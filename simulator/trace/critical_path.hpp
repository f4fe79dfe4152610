// Finds the chain of ops and waits that sets the step time: if none of them is shortened, the step does not
// end sooner.
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

// A part of the path: a running row of the trace, or (row kNoRow) a wait whose cause is not in the trace.
struct PathSegment {
  std::size_t row = 0;
  double begin_s = 0, end_s = 0;
  // "forward", "backward", "optimizer" ...: computation, by pass; "gradient sync", "pipeline transfer" ...:
  // transmission of bytes; "latency": a transfer's startup and latency; "server work", "data", "waiting".
  std::string kind;
};

// Returns the path of a job's last step, from the end of the step before (breakdown.cpp's window) to its own
// end. Segments are adjacent, so they add up to the step. The path is found backwards from the op that ends
// last: inside a rank, it follows what the op waited for (causes.hpp); for a transfer or collective, it
// continues on the side that was ready last.
std::vector<PathSegment> critical_path(const Trace& trace, int job);

// Returns the seconds of each kind, the longest first.
std::vector<std::pair<std::string, double>> seconds_by_kind(const std::vector<PathSegment>& path);

// Resources that could be made faster. `compute` is everything that devices do, `memory_bandwidth` only the
// bandwidth of their memory. `host`: the bandwidth of the nodes' memory and NVMe, if optimizer state is
// stored there. `input`: the storage, and the workers that load from it.
enum class Resource {
  compute,
  memory_bandwidth,
  intra_node_links,
  network_links,
  latency,
  servers,
  host,
  launches,
  input
};
inline constexpr std::array<std::string_view, 9> kResourceNames = {
    "compute", "memory_bandwidth", "intra_node_links", "network_links", "latency", "servers",
    "host",    "kernel_launches", "input"};

// The kind of a segment in which a device waits for its process to issue kernels.
inline constexpr std::string_view kLaunches = "kernel launches";

// A resource at `kFaster` times its rate takes 1/1.1 of its time.
inline constexpr double kFaster = 1.1;

// The step with a resource kFaster times as fast: simulated again, if that was cheap enough; and estimated to
// first order.
struct WhatIf {
  Resource resource = Resource::compute;
  std::optional<double> step_time_s;
  double path_saved_s = 0;
};

// Returns, to first order, how much sooner the step would end if a resource were kFaster times as fast: what
// the path's own segments would gain if it remained the longest path. A transfer's bytes are limited by the
// kind of link that needs the most time for them; for collectives over several nodes, this is assumed to be
// the network.
std::array<double, kResourceNames.size()> path_savings_s(const std::vector<PathSegment>& path,
                                                         const Trace& trace, const Cluster& cluster);

}  // namespace rehearse
