// Describes one plan: the settings that it gives a scenario.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// What ranks with the same weights shard among them: ZeRO's stages, or PyTorch's hybrid FSDP, whose shards
// stay inside a node.
enum class Sharing { nothing, optimizer, gradients, weights, weights_in_node };
inline constexpr std::array<std::string_view, 5> kSharingNames = {"nothing", "ZeRO-1", "ZeRO-2", "ZeRO-3",
                                                                  "hybrid FSDP"};

// The rule by which stages get their layers: stages of equal time, or of an equal number of blocks, with the
// embedding and the output layer in addition to the blocks of the first and the last stage.
enum class StageCut { by_time, by_number };

// How gradients are combined, and where the ranks that do so are placed.
struct GradientChoice {
  Sharing sharing = Sharing::nothing;
  bool pipeline_inside = false;  // stages of a pipeline are neighbours, and data-parallel ranks are apart
  Algorithm all_reduce = Algorithm::automatic;
  double bucket_mb = 25;
  int servers = 0;  // parameter servers on the nodes' processors; 0: all-reduce
  bool operator==(const GradientChoice&) const = default;
};
// The number of cases that these choices distinguish in a rank's memory: one for each kind of sharing, and
// one for parameter servers.
inline constexpr std::size_t kHoldings = kSharingNames.size() + 1;
constexpr std::size_t holding_of(const GradientChoice& choice) {
  return choice.servers > 0 ? kSharingNames.size() : static_cast<std::size_t>(choice.sharing);
}

// The rest of a plan: how the model is divided, and in which order it is computed. Degrees are those of a
// scenario file.
struct CoreChoice {
  int tensor = 1, context = 1, pipeline = 1, data = 1;
  int expert = 1, expert_tensor = 0;
  ContextKind context_kind = ContextKind::ring;
  bool sequence_parallel = false;
  int micro_batch = 1;
  Recompute recompute = Recompute::none;
  int recompute_layers = 0;  // 0: all layers
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int virtual_stages = 1;
  StageCut cut = StageCut::by_time;
  bool operator==(const CoreChoice&) const = default;
};

struct PlanChoice {
  CoreChoice core;
  GradientChoice gradients;
  std::vector<int> stage_layers;  // by part of the model; empty: no pipeline
  bool operator==(const PlanChoice&) const = default;
};

// Returns the keys that a plan sets, with their values in TOML. Every key that the planner searches is either
// among them or absent from the plan's scenario.
std::vector<std::pair<std::string, std::string>> settings_of(const PlanChoice& plan, const Model& model);
// Returns the keys that plans set; the scenario's own values of these keys are removed first.
std::vector<std::string> searched_keys();
// Returns a text: "data 16 x tensor 8 x pipeline 8, 1F1B, micro-batch 1, full recomputation, ZeRO-1".
std::string in_words(const PlanChoice& plan);

}  // namespace rehearse
