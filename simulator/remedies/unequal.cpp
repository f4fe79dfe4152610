#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "simulator/remedies/remedy_kinds.hpp"
#include "simulator/strategies/programs/model_cut.hpp"
#include "simulator/strategies/programs/placed_devices.hpp"

namespace rehearse {
namespace {

bool has_unequal_devices(const Cluster& cluster) {
  return !cluster.groups().empty() || std::any_of(cluster.slow_parts.begin(), cluster.slow_parts.end(),
                                                  [](const SlowPart& part) { return part.device >= 0; });
}

// Returns the share of its time that work saves if it is divided in proportion to speed instead of evenly. A
// part takes the time of the slowest first, and then that of all speeds together.
double saved_by_speed(const std::vector<double>& seconds) {
  double speeds = 0;
  for (const double part_s : seconds) speeds += 1 / part_s;
  const double slowest_s = *std::max_element(seconds.begin(), seconds.end());
  return 1 - static_cast<double>(seconds.size()) / speeds / slowest_s;
}

}  // namespace

void suit_slow_stages(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  if (s.strategy.pipeline == 1 || s.strategy.stages_by == StagesBy::speed || !has_unequal_devices(*s.cluster))
    return;
  const std::vector<LayerCost> costs = costs_of(cut_model(s).layers);
  const PlacedDevices placed = placed_devices(s);
  std::vector<double> seconds;  // by stage: all layers on its devices
  for (int stage = 0; stage < placed.stages; ++stage) {
    const std::vector<double> times_s = layer_times_s(s, costs, placed.of_stage(stage));
    seconds.push_back(std::accumulate(times_s.begin(), times_s.end(), 0.0));
  }
  Remedy remedy{"stages with slower devices hold fewer layers",
                {"strategy.stages_by=speed"},
                saved_by_speed(seconds) * now.metrics.step_time_s};
  if (!s.strategy.stage_layers.empty()) remedy.sets.emplace_back("strategy.stage_layers=");
  found.push_back(std::move(remedy));
}

// A micro-batch of few samples cannot be divided finely, so larger ones are proposed, too.
void suit_slow_replicas(const Situation& now, Remedies& found) {
  const Scenario& s = now.scenario;
  if (s.strategy.data == 1 || s.strategy.batch_by == BatchBy::speed || !has_unequal_devices(*s.cluster))
    return;
  const ModelCut cut = cut_model(s);
  const double at_most_s = saved_by_speed(replica_sample_s(s, placed_devices(s), costs_of(cut.layers),
                                                           layer_ranges(cut.stage_layers))) *
                           now.metrics.step_time_s;
  for (const int times : {1, 4, 8}) {
    if (s.microbatches % times != 0) continue;
    Remedy remedy{"slower replicas train fewer samples", {"strategy.batch_by=speed"}, at_most_s};
    if (times > 1)
      remedy.sets.push_back(fmt::format("training.micro_batch={}", times * s.training.micro_batch));
    found.push_back(std::move(remedy));
  }
}

}  // namespace rehearse
