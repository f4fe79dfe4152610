#include "simulator/commands/predicting/collective_uncertainty.hpp"

#include <cmath>
#include <utility>

#include "simulator/commands/predicting/link_constants.hpp"
#include "simulator/commands/predicting/propagation.hpp"

namespace rehearse {
namespace {

// The same collective measured twice, out of place and in place, differs by a standard deviation of ln(time)
// of 1.4 % from 1 MiB on (112 pairs), and of 4 % below (52 pairs, derived from their median, since single
// ones differ by up to five times), in the tables of nccl-tests that nccl-tests-published.csv cites.
constexpr double kLargeBytes = 1048576, kScatter = 0.014, kScatterOfSmall = 0.04;

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
    found.push_back(propagated(predicted[i].time_s, std::move(effects[i]),
                               predicted[i].bytes < kLargeBytes ? kScatterOfSmall : kScatter));
  return found;
}

}  // namespace rehearse
