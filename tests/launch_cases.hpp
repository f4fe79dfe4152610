// Lists scenarios that can be written as launch files of training frameworks, and read again.
#pragma once

#include <string>
#include <vector>

#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse::test {

inline Scenario scenario_of(const std::string& model, const std::string& cluster, int nodes,
                            const std::vector<std::string>& overrides) {
  return read_scenario_text("[model]\npreset = \"" + model +
                                "\"\n[training]\nglobal_batch = 256\n[cluster]\n" + "preset = \"" + cluster +
                                "\"\nnodes = " + std::to_string(nodes) + "\n[strategy]\n",
                            model + ".toml", overrides);
}

struct LaunchCase {
  const char* model;
  const char* cluster;
  int nodes;
  std::vector<std::string> overrides;
};

// Returns the case's scenario with further overrides.
inline Scenario scenario_of(const LaunchCase& one, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides = one.overrides;
  overrides.insert(overrides.end(), more.begin(), more.end());
  return scenario_of(one.model, one.cluster, one.nodes, overrides);
}

inline const std::vector<LaunchCase> kLaunchCases = {
    {"gpt3-175b",
     "dgx-a100",
     8,
     {"strategy.tensor=8", "strategy.pipeline=8", "training.recompute=selective",
      "training.attention=unfused"}},
    {"llama3-70b",
     "dgx-h100",
     8,
     {"strategy.tensor=8", "strategy.sequence_parallel=true", "strategy.pipeline=2", "strategy.context=2",
      "strategy.zero_stage=1", "strategy.tensor_overlap=chunks"}},
    {"llama3-8b", "dgx-h100", 4, {"strategy.fsdp=full", "training.recompute=operators"}},
    {"llama3-8b",
     "dgx-h100",
     4,
     {"strategy.fsdp=hybrid", "strategy.shard_degree=8", "training.precision=fp8",
      "training.framework=torchtitan-2024"}},
    {"llama3-8b",
     "dgx-b200",
     2,
     {"strategy.zero_stage=3", "training.precision=mxfp8", "strategy.reshard_after_forward=false"}},
    {"llama3-8b",
     "dgx-b200",
     2,
     {"strategy.zero_stage=1", "training.precision=nvfp4", "training.cuda_graphs=true",
      "training.fused_loss=true"}},
    {"llama3-8b", "dgx-a100", 2, {"strategy.zero_stage=2", "training.optimizer=momentum"}},
    {"llama2-7b",
     "dgx-h100",
     2,
     {"strategy.preset=pytorch-fsdp", "strategy.context=4", "strategy.context_kind=all-gather",
      "training.sequence_length=4096"}},
    {"llama3-8b",
     "dgx-h100",
     2,
     {"strategy.preset=deepspeed-zero-3", "strategy.context=8", "strategy.context_kind=all-to-all"}},
    {"mixtral-8x7b",
     "dgx-h100",
     8,
     {"strategy.pipeline=4", "strategy.tensor=2", "strategy.sequence_parallel=true", "strategy.expert=8",
      "strategy.expert_tensor=1", "strategy.zero_stage=1", "strategy.capacity_factor=1.25",
      "training.sequence_length=4096", "training.recompute=full", "training.recompute_layers=2"}},
    {"deepseek-v3",
     "dgx-h100",
     32,
     {"strategy.pipeline=16", "strategy.schedule=dualpipe-v", "strategy.virtual_stages=2",
      "strategy.expert=16", "strategy.expert_dispatch=nodes", "strategy.overlap_passes=true",
      "strategy.zero_stage=1", "training.precision=fp8"}},
    {"qwen3-30b-a3b",
     "dgx-h100",
     4,
     {"strategy.expert=8", "strategy.fsdp=full", "training.cuda_graphs=true"}},
    {"gpt-oss-20b", "dgx-h100", 4, {"strategy.expert=8", "strategy.fsdp=full"}},
    {"qwen2.5-7b",
     "dgx-h100",
     2,
     {"strategy.pipeline=4", "strategy.schedule=interleaved", "strategy.virtual_stages=2",
      "strategy.blocking_p2p=true", "strategy.zero_stage=1", "strategy.offload=cpu"}},
    {"bloom-176b",
     "jean-zay",
     48,
     {"strategy.tensor=4", "strategy.pipeline=12", "training.global_batch=2048"}},
    {"gpt2", "dgx1-v100", 1, {"training.precision=fp16", "training.gradient_precision=fp32"}},
};

}  // namespace rehearse::test
