// One plan: what it sets of a scenario.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// What ranks with the same weights share out: ZeRO's stages, or PyTorch's hybrid FSDP, whose shards stay
// inside a node.
enum class Sharing { nothing, optimizer, gradients, weights, weights_in_node };
inline constexpr std::array<std::string_view, 5> kSharingNames = {"nothing", "ZeRO-1", "ZeRO-2", "ZeRO-3",
                                                                  "hybrid FSDP"};

// By which rule stages get their layers: all equally long, or the same number of blocks each, the embedding
// and the output layer beside those of the first and the last one.
enum class StageCut { by_time, by_number };

// How gradients are brought together, and where the ranks stand that do so.
struct GradientChoice {
  Sharing sharing = Sharing::nothing;
  bool pipeline_inside = false;  // stages of a pipeline are neighbours, and data-parallel ranks are apart
  Algorithm all_reduce = Algorithm::automatic;
  double bucket_mb = 25;
  int servers = 0;  // parameter servers on the nodes' processors; 0: all-reduce
  bool operator==(const GradientChoice&) const = default;
};
// What of a rank's memory follows from these choices: one for each way to share, and one for servers.
inline constexpr std::size_t kHoldings = kSharingNames.size() + 1;
constexpr std::size_t holding_of(const GradientChoice& choice) {
  return choice.servers > 0 ? kSharingNames.size() : static_cast<std::size_t>(choice.sharing);
}

// The rest of a plan: how the model is cut, and in which order it is computed. Degrees as they stand in a
// scenario file.
struct CoreChoice {
  int tensor = 1, context = 1, pipeline = 1, data = 1;
  int expert = 1, expert_tensor = 0;
  ContextKind context_kind = ContextKind::ring;
  bool sequence_parallel = false;
  int micro_batch = 1;
  Recompute recompute = Recompute::none;
  int recompute_layers = 0;  // 0: all
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int virtual_stages = 1;
  StageCut cut = StageCut::by_time;
  bool operator==(const CoreChoice&) const = default;
};

struct PlanChoice {
  CoreChoice core;
  GradientChoice gradients;
  std::vector<int> stage_layers;  // of each part of the model; empty: no pipeline
  bool operator==(const PlanChoice&) const = default;
};

// The keys that a plan sets, with their values in TOML; every key that the planner searches stands there or
// is absent from a plan's scenario.
std::vector<std::pair<std::string, std::string>> settings_of(const PlanChoice& plan, const Model& model);
// Keys that plans set: a scenario's own values are taken out first.
std::vector<std::string> searched_keys();
// "tensor 8 x pipeline 8 x data 16, interleaved (3), micro-batch 1, full recomputation, ZeRO-1"
std::string in_words(const PlanChoice& plan);

}  // namespace rehearse
