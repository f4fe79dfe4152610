#include "simulator/strategies/programs/algorithm.hpp"

#include <fmt/format.h>

#include <limits>

#include "models/text/error.hpp"

namespace rehearse {

Algorithm AlgorithmChoice::of(const std::vector<Endpoint>& members, double bytes) {
  const Algorithm asked = scenario_.strategy.all_reduce;
  if (asked == Algorithm::automatic) return fastest(members, bytes);
  if (const std::string why = misfit(asked, *scenario_.cluster, members); !why.empty())
    throw InputError({scenario_.name, 0, 0},
                     fmt::format("strategy.all_reduce is \"{}\", for a group with {}",
                                 kAlgorithmNames[static_cast<std::size_t>(asked)], why));
  return asked;
}

Algorithm AlgorithmChoice::or_ring(const std::vector<Endpoint>& members, double bytes) {
  const Algorithm asked = scenario_.strategy.all_reduce;
  if (asked == Algorithm::automatic) return fastest(members, bytes);
  return misfit(asked, *scenario_.cluster, members).empty() ? asked : Algorithm::ring;
}

Algorithm AlgorithmChoice::fastest(const std::vector<Endpoint>& members, double bytes) {
  const Cluster& cluster = *scenario_.cluster;
  std::vector<PlanOnNetwork>& plans = plans_[members];
  if (plans.empty())
    for (const Algorithm a : candidates(cluster, members, scenario_.engine.protocol)) {
      plans.push_back(
          on_network(collective_plan(a, cluster, members, scenario_.strategy.channels), cluster, members));
      for (std::vector<StageOnNetwork>& lane : plans.back().lanes)
        for (StageOnNetwork& stage : lane) std::vector<LinkId>().swap(stage.links);
    }
  Algorithm best = Algorithm::ring;
  double best_s = std::numeric_limits<double>::infinity();
  for (const PlanOnNetwork& plan : plans) {
    const double seconds =
        time_as_chosen_s(plan, bytes, scenario_.engine.protocol, scenario_.engine.chunk_bytes);
    if (seconds < best_s) {
      best_s = seconds;
      best = plan.algorithm;
    }
  }
  return best;
}

}  // namespace rehearse
