// One collective alone on a cluster: what it is asked to do, and how long it takes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/commands/commands.hpp"
#include "simulator/costs/engine_options.hpp"
#include "simulator/schedule/collective.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Bytes as nccl-tests counts them: all-reduce, broadcast, reduce and send-receive the buffer of a rank;
// all-gather and reduce-scatter the concatenated buffer; all-to-all what a rank sends to all ranks (itself
// included).
inline constexpr double kLeastCollectiveBytes = 4, kMostCollectiveBytes = 1099511627776;

struct CollectiveTime {
  double bytes = 0;
  double time_s = 0;
  std::string_view algorithm;          // "ring"; "" where messages go directly
  Algorithm chosen = Algorithm::ring;  // the same; ring where messages go directly
  std::string_view protocol;           // NCCL's "LL", "LL128" or "Simple"; "" where none is modelled
};

// Predicts each size (bytes) on the first `ranks` devices of the cluster, alone on the network, with the
// engine's default options: the way in which `rehearse simulate` predicts a collective of a training step.
// `asked`: of all-reduces; automatic: the fastest for each size, as a scenario's default has it. InputError
// if the algorithm does not fit.
std::vector<CollectiveTime> collective_times(Exchange kind, const std::shared_ptr<const Cluster>& cluster,
                                             int ranks, const std::vector<double>& bytes, Algorithm asked);

// Seconds of the same sizes by the same algorithms, with other options or on another cluster.
std::vector<double> simulated_again_s(Exchange kind, const Cluster& cluster, int ranks,
                                      const std::vector<CollectiveTime>& times, const EngineOptions& options);

// bytes / time.
double algorithm_bandwidth(const CollectiveTime& time);
// What nccl-tests multiplies the algorithm's bandwidth with to get the bus bandwidth, which does not depend
// on the number of ranks: doc/PERFORMANCE.md of NVIDIA/nccl-tests. One rank: 0 where the formula says so.
double bus_factor(Exchange kind, int ranks);

// Whether the name is that of a preset; else that of a file. InputError names `--cluster` if it is neither.
bool is_cluster_preset(const std::string& name);
// The cluster of that preset's or file's name with so many nodes. 0: as many as `devices` need, or else as
// many as the file says (presets: 1). InputError names `option`.
std::shared_ptr<const Cluster> collective_cluster(const std::string& name, int nodes, int devices);

}  // namespace rehearse
