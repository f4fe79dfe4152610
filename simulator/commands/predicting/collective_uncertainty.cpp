#include "simulator/commands/predicting/collective_uncertainty.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/commands/predicting/link_constants.hpp"
#include "simulator/commands/predicting/propagation.hpp"
#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

constexpr double kLargeBytes = 1048576, kHugeBytes = 67108864;

// Standard deviations of ln(time) between measurements that are predicted alike: below 1 MiB, from there to
// 64 MiB, and beyond.
struct Scatter {
  double small = 0, large = 0, huge = 0;
  double of(double bytes) const { return bytes < kLargeBytes ? small : bytes < kHugeBytes ? large : huge; }
};

// The same collective measured twice, out of place and in place, differs by 1.4 % from 1 MiB on (112 pairs),
// and by 4 % below (52 pairs, derived from their median, since single ones differ by up to five times), in
// the tables of nccl-tests that nccl-tests-published.csv cites.
constexpr Scatter kRuns = {0.04, 0.014, 0.014};
// On boards since Hopper, software differs: small all-reduces of 8 H100 take 13 to 20 us in NCCL's tests, if
// each GPU has a process, 26 to 40 in XLA, and 35 to 40 where one process issues all calls
// (xla-collectives.csv, nccl-tests-published.csv). Messages of all-to-alls scatter twice as much.
constexpr Scatter kBoards = {0.25, 0.12, 0.05}, kMessagesOnBoards = {0.3, 0.3, 0.2};
// In racks: errors on rows that set nothing, between which protocols change at sizes that are not printed.
constexpr Scatter kRacks = {0.06, 0.14, 0.05}, kMessagesInRacks = {0.09, 0.16, 0.13};
// Switches that sum over several nodes: two pairs of p5 differ by up to two times.
constexpr Scatter kSwitchesOfNodes = {0.04, 0.1, 0.2};

Scatter scatter_of(Exchange kind, const Cluster& cluster, int ranks, Algorithm algorithm) {
  constexpr int kHopper = 90;
  const Node& node = cluster.node();
  const bool several = cluster.node_of(ranks - 1) > 0, messages = kind == Exchange::all_to_all;
  if (several) return algorithm == Algorithm::nvls_tree ? kSwitchesOfNodes : kRuns;
  if (node.device.compute_capability < kHopper || node.interconnect != Node::Interconnect::nvswitch)
    return kRuns;
  if (std::max(node.devices, node.whole_devices) > nccl::kMostDevicesOfBoard)
    return messages ? kMessagesInRacks : kRacks;
  return messages ? kMessagesOnBoards : kBoards;
}

}  // namespace

std::vector<Uncertainty> collective_uncertainties(Exchange kind,
                                                  const std::shared_ptr<const Cluster>& cluster, int ranks,
                                                  const std::vector<CollectiveTime>& predicted,
                                                  Protocol::Software software) {
  std::vector<std::vector<Uncertainty::Effect>> effects(predicted.size());
  EngineOptions as_predicted;
  as_predicted.protocol.software = software;
  for (const LinkConstant& constant : link_constants(*cluster, as_predicted.protocol)) {
    const auto with = [&](double deviations) {
      std::shared_ptr<const Cluster> changed = cluster;
      EngineOptions options = as_predicted;
      constant.change(changed, options, std::exp(deviations * constant.deviation));
      return simulated_again_s(kind, *changed, ranks, predicted, options);
    };
    const std::vector<double> better_s = with(1), worse_s = with(-1);
    for (std::size_t i = 0; i < predicted.size(); ++i)
      effects[i].push_back({constant.name, constant.basis, constant.deviation, better_s[i], worse_s[i]});
  }
  std::vector<Uncertainty> found;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    found.push_back(
        propagated(predicted[i].time_s, std::move(effects[i]),
                   scatter_of(kind, *cluster, ranks, predicted[i].chosen).of(predicted[i].bytes)));
  return found;
}

}  // namespace rehearse
