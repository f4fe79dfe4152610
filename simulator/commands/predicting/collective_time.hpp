// Predicts how long one collective takes alone on a cluster.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/costs/engine_options.hpp"
#include "simulator/schedule/collective.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// What nccl-tests measures. send_receive: every rank sends to the next one and receives from the previous
// one.
enum class Exchange { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send_receive };
inline constexpr std::array<std::string_view, 7> kExchangeNames = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "send-receive"};

// Limits of the size in bytes, as nccl-tests counts it. All-reduce, broadcast, reduce and send-receive: the
// buffer of a rank; all-gather and reduce-scatter: the concatenated buffer; all-to-all: what a rank sends to
// all ranks (itself included).
inline constexpr double kLeastCollectiveBytes = 4, kMostCollectiveBytes = 1099511627776;

struct CollectiveTime {
  double bytes = 0;
  double time_s = 0;
  std::string_view algorithm;          // "ring"; empty if messages go directly
  Algorithm chosen = Algorithm::ring;  // the same; ring if messages go directly
  std::string_view protocol;           // NCCL's "LL", "LL128" or "Simple"; empty if none is modelled
};

// The same collective with another algorithm and protocol of NCCL's.
struct CollectiveAlternative {
  Algorithm algorithm = Algorithm::ring;
  std::string_view protocol;
  std::vector<double> times_s;  // by size; NaN where NCCL does not have the pair
};

// Predicts each size (bytes) on the first `ranks` devices of the cluster, alone on the network, with the
// engine's default options, in the same way as `rehearse simulate` predicts a collective of a training step.
// `asked`: algorithm of all-reduces; automatic: the fastest for each size, as by default in a scenario.
// Throws InputError if the algorithm does not fit.
std::vector<CollectiveTime> collective_times(Exchange kind, const std::shared_ptr<const Cluster>& cluster,
                                             int ranks, const std::vector<double>& bytes, Algorithm asked,
                                             Protocol::Software software = Protocol::nccl_tests);

// Predicts the time of each size with every algorithm and protocol that NCCL could choose, including the one
// that it chooses. Returns an empty list where NCCL has no choice: for direct messages, and on processors.
std::vector<CollectiveAlternative> collective_alternatives(Exchange kind, const Cluster& cluster, int ranks,
                                                           const std::vector<CollectiveTime>& times,
                                                           Protocol::Software software);

// Returns the seconds of the same sizes with the same algorithms, but with other options or on another
// cluster.
std::vector<double> simulated_again_s(Exchange kind, const Cluster& cluster, int ranks,
                                      const std::vector<CollectiveTime>& times, const EngineOptions& options);

// Returns bytes / time.
double algorithm_bandwidth(const CollectiveTime& time);
// Returns the factor by which nccl-tests multiplies the algorithm's bandwidth to get the bus bandwidth, which
// does not depend on the number of ranks: doc/PERFORMANCE.md of NVIDIA/nccl-tests. For one rank, it is 0
// where the formula gives 0.
double bus_factor(Exchange kind, int ranks);

// Returns whether the name is that of a preset, rather than that of a file. Throws InputError, which names
// `--cluster`, if it is neither.
bool is_cluster_preset(const std::string& name);
// Where collectives run.
struct CollectivePlace {
  std::string cluster;  // name of a preset, or a path
  int nodes =
      0;  // 0: as many as `devices` fill or, if that is 0, too, as many as the file states (presets: 1)
  int devices = 0;                     // with `nodes`: shared out evenly over them; 0: all
  int devices_per_node = 0;            // 0: as many as the file states
  std::vector<std::string> overrides;  // "cluster.key=value"
};
// Returns the cluster. Throws InputError, which names `--cluster`, `--devices` or `--set`.
std::shared_ptr<const Cluster> collective_cluster(const CollectivePlace& place);

}  // namespace rehearse
