// Lists plans that people chose by long experiments on their clusters, and what their frameworks let them
// choose from.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "simulator/planner/plan_space.hpp"

namespace rehearse::testing {

// Gradients are summed by rings, in buckets of the default size, as in the rows of the tables.
inline const SpaceLimits kPlainGradients = {{"strategy.all_reduce", {"ring"}},
                                            {"strategy.bucket_mb", {"25"}},
                                            {"strategy.parameter_server.servers", {"0"}}};

inline SpaceLimits with(SpaceLimits limits, const SpaceLimits& more) {
  for (const auto& [key, values] : more) limits[key] = values;
  return limits;
}

// Narayanan et al. 2021 (arXiv 2104.04473), sections 2 and 3.
inline const SpaceLimits kMegatron2021 =
    with(kPlainGradients, {{"strategy.schedule", {"1f1b", "interleaved"}},
                           {"strategy.context", {"1"}},
                           {"strategy.sequence_parallel", {"false"}},
                           {"strategy.zero_stage", {"0"}},
                           {"training.recompute", {"full"}},
                           {"training.recompute_layers", {"0"}}});
// Korthikanti et al. 2022 (arXiv 2205.05198) added sequence parallelism and selective recomputation.
inline const SpaceLimits kMegatron2022 =
    with(kMegatron2021, {{"strategy.sequence_parallel", {"true", "false"}},
                         {"training.recompute", {"none", "selective", "full"}}});
// NVIDIA/Megatron-LM core_r0.8.0 megatron/training/arguments.py: --use-distributed-optimizer and
// --context-parallel-size, with rings.
inline const SpaceLimits kMegatronCore =
    with(kPlainGradients, {{"strategy.schedule", {"1f1b", "interleaved"}},
                           {"strategy.context_kind", {"ring"}},
                           {"strategy.zero_stage", {"0", "1"}},
                           {"training.recompute", {"none", "full"}},
                           {"training.recompute_layers", {"0"}}});
// Grattafiori et al. 2024 (arXiv 2407.21783), section 3.3.2: FSDP that shards optimizer state and gradients,
// and context parallelism by all-gather.
inline const SpaceLimits kLlama3 =
    with(kMegatronCore, {{"strategy.context_kind", {"all-gather"}}, {"strategy.zero_stage", {"1", "2"}}});
inline const SpaceLimits kLlama3Tensor8 =
    with(kLlama3, {{"strategy.tensor", {"8"}}, {"strategy.context", {"1"}}});
// PyTorch's FSDP without other parallelism: NO_SHARD, SHARD_GRAD_OP and FULL_SHARD.
inline const SpaceLimits kFsdp = with(kPlainGradients, {{"strategy.tensor", {"1"}},
                                                        {"strategy.pipeline", {"1"}},
                                                        {"strategy.context", {"1"}},
                                                        {"strategy.zero_stage", {"0", "2", "3"}},
                                                        {"training.recompute", {"none", "full"}},
                                                        {"training.recompute_layers", {"0"}}});

struct PeoplesChoice {
  std::string name;
  std::string table, row;         // of benchmarks/measurements; no row: a file of simulator/scenarios
  std::vector<std::string> sets;  // overrides of the scenario
  const SpaceLimits& limits;
  bool quick = false;  // the search takes only seconds
  // On the devices' memory; > 1 where their plan is estimated to exceed it, or the planner's margin.
  double memory_factor = 1;
};

// Returns the overrides by which a GPT differs from a row of the same table: layers, hidden size, heads,
// global batch, micro-batch, degrees, virtual stages, nodes.
inline std::vector<std::string> gpt(int layers, int hidden, int heads, int batch, int micro, int tensor,
                                    int data, int pipeline, int virtual_stages, int nodes) {
  return {fmt::format("model.transformer.layers={}", layers),
          fmt::format("model.transformer.hidden={}", hidden),
          fmt::format("model.transformer.heads={}", heads),
          fmt::format("training.global_batch={}", batch),
          fmt::format("training.micro_batch={}", micro),
          fmt::format("strategy.tensor={}", tensor),
          fmt::format("strategy.data={}", data),
          fmt::format("strategy.pipeline={}", pipeline),
          fmt::format("strategy.schedule={}", virtual_stages > 1 ? "interleaved" : "1f1b"),
          fmt::format("strategy.virtual_stages={}", virtual_stages),
          fmt::format("cluster.nodes={}", nodes)};
}

// Returns all choices. Four are not rows of the tables: 3.6B, 39.1B and 310.1B of table 1 of Narayanan et
// al., with the micro-batches and virtual stages of NVIDIA/Megatron-LM 79a3bb6 examples/sc21/run_table_1.sh,
// and 530B of table 3 of Korthikanti et al. Without recomputation, as its row assumes, MegaScale's baseline
// needs 88 GiB.
inline std::vector<PeoplesChoice> peoples_choices() {
  const std::string narayanan = "narayanan-2021", korthikanti = "korthikanti-2022", nemo = "nemo-h100-2024",
                    a100 = "mosaicml-a100", h100 = "mosaicml-h100";
  const std::string small = "T1-1.7B", gpt3 = "table5-175B-selective";
  return {
      {"Narayanan 1.7B", narayanan, small, {}, kMegatron2021, true},
      {"Narayanan 3.6B", narayanan, small, gpt(30, 3072, 32, 512, 16, 2, 32, 1, 1, 8), kMegatron2021},
      {"Narayanan 7.5B", narayanan, "T1-7.5B", {}, kMegatron2021},
      {"Narayanan 18.4B", narayanan, "T1-18.4B", {}, kMegatron2021},
      {"Narayanan 39.1B", narayanan, small, gpt(48, 8192, 64, 1536, 4, 8, 32, 2, 1, 64), kMegatron2021},
      {"Narayanan 76.1B", narayanan, "T1-76.1B", {}, kMegatron2021},
      {"Narayanan 145.6B", narayanan, "T1-145.6B", {}, kMegatron2021},
      {"Narayanan 310.1B", narayanan, small, gpt(96, 16384, 128, 2160, 1, 8, 15, 16, 2, 240), kMegatron2021},
      {"Narayanan 529.6B", narayanan, "T1-529.6B", {}, kMegatron2021},
      {"Narayanan 1008B", narayanan, "T1-1008B", {}, kMegatron2021},
      {"Narayanan PTD-P 174.6B, 384 GPUs", narayanan, "T2-PTD-174.6-384", {}, kMegatron2021},
      {"Korthikanti 22B", korthikanti, "table5-22B-selective", {}, kMegatron2022, true},
      {"Korthikanti 175B", korthikanti, gpt3, {}, kMegatron2022},
      {"Korthikanti 530B", korthikanti, gpt3, gpt(105, 20480, 128, 280, 1, 8, 1, 35, 3, 35), kMegatron2022},
      {"Korthikanti 1T", korthikanti, "table5-1T-selective", {}, kMegatron2022},
      {"MegaScale 175B, 256 GPUs",
       "megascale-2024",
       "T2-Megatron-LM-256",
       {"training.recompute=selective"},
       kMegatron2022,
       true},
      {"Llama 3 405B, 8,192 GPUs",
       "llama3-405b.toml",
       "",
       {"cluster.nodes=1024", "strategy.data=64"},
       kLlama3,
       false,
       1.3},
      {"Llama 3 405B, 1,024 GPUs of 8,192, tensor 8",
       "llama3-405b.toml",
       "",
       {"cluster.nodes=128", "strategy.data=8", "training.global_batch=256"},
       kLlama3Tensor8,
       true,
       1.3},
      {"NeMo LLAMA2-7B, 8 GPUs", nemo, "8e3d65-LLAMA2-7B-8", {}, kMegatronCore, true},
      {"NeMo LLAMA2-13B, 16 GPUs", nemo, "8e3d65-LLAMA2-13B-16", {}, kMegatronCore},
      {"NeMo GPT3-20B, 64 GPUs", nemo, "8e3d65-GPT3-20B-64", {}, kMegatronCore},
      {"NeMo LLAMA3-70B, 64 GPUs", nemo, "8e3d65-LLAMA3-70B-64", {}, kMegatronCore},
      {"NeMo GPT3-175B, 128 GPUs", nemo, "8e3d65-GPT3-175B-128", {}, kMegatronCore},
      {"MosaicML 13B, 8 A100", a100, "13b-s16384-8gpu-80gb-mb3-gb72-full", {}, kFsdp, true},
      {"MosaicML 30B, 8 A100", a100, "30b-s2048-8gpu-80gb-mb3-gb504-full", {}, kFsdp},
      {"MosaicML 30B, 16 H100", h100, "30b-s2048-16gpu-mb10-gb480", {}, kFsdp, true},
      {"MosaicML 3B, 32 H100", h100, "3b-s2048-32gpu-mb6-gb576", {}, kFsdp},
  };
}

}  // namespace rehearse::testing
