#include <algorithm>
#include <array>
#include <string_view>

#include "simulator/remedies/remedy_kinds.hpp"

namespace rehearse {
namespace {

constexpr double kWorthTrying = 0.02;  // of the step

constexpr std::array<RemedyKind, 20> kKinds = {
    recompute_less,   change_micro_batch,      fuse_attention,  fuse_loss,        use_tensor_cores,
    launch_by_graphs, move_ranks_between_axes, change_schedule, change_experts,   change_placement,
    load_faster,      save_beside_training,    overlap_more,    share_tokens,     change_gradient_sync,
    change_shards,    change_context,          change_servers,  suit_slow_stages, suit_slow_replicas};

}  // namespace

std::string_view key_of(std::string_view assignment) {
  return assignment.substr(0, assignment.find('='));
}

bool needs_what_is_lacking(const std::vector<std::string>& sets, const std::vector<std::string>& lacks) {
  return std::any_of(sets.begin(), sets.end(), [&](const std::string& set) {
    if (set.ends_with("=")) return false;
    return std::any_of(lacks.begin(), lacks.end(), [&](const std::string& lacking) {
      return lacking.find('=') == std::string::npos ? key_of(set) == lacking : set == lacking;
    });
  });
}

std::vector<Remedy> remedies(const Scenario& scenario, const Metrics& metrics) {
  Remedies found;
  const Situation now{scenario, metrics};
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    const std::size_t before = found.size();
    kKinds[kind](now, found);
    for (std::size_t i = before; i < found.size(); ++i) found[i].kinds = {static_cast<int>(kind)};
  }
  std::erase_if(found, [&](const Remedy& remedy) {
    return remedy.at_most_s < kWorthTrying * metrics.step_time_s ||
           needs_what_is_lacking(remedy.sets, scenario.strategy.lacks);
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Remedy& a, const Remedy& b) { return a.at_most_s > b.at_most_s; });
  return found;
}

}  // namespace rehearse
