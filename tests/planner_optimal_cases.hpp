// Lists searches for plans in spaces small enough to simulate every plan.
#pragma once

#include <string>

#include "simulator/planner/plan_space.hpp"

namespace rehearse::testing {

// Models.
inline constexpr const char* kGpt =
    "[model.transformer]\nlayers = 4\nhidden = 512\nheads = 8\nvocabulary = 8192\nsequence_length = 512\n";
inline constexpr const char* kDeepGpt =
    "[model.transformer]\nlayers = 7\nhidden = 256\nheads = 4\nvocabulary = 32000\nsequence_length = 256\n";
inline constexpr const char* kLlama =
    "[model.transformer]\nlayers = 4\nhidden = 1024\nheads = 16\nkv_heads = 2\nrotary = true\ngated = true\n"
    "tied_embeddings = false\nvocabulary = 16000\nsequence_length = 8192\n";
inline constexpr const char* kMixture =
    "[model.transformer]\nlayers = 4\nhidden = 512\nheads = 8\nvocabulary = 8192\nsequence_length = 512\n"
    "experts = 8\nexperts_per_token = 2\n";
inline constexpr const char* kImages = "[model]\npreset = \"resnet50\"\n";
inline constexpr const char* kPerceptron =
    "[model.multi_layer_perceptron]\nwidths = [512, 2048, 4096, 2048, 512, 1000]\n";
inline constexpr const char* kProfiled =
    "[model.profiled]\nlayers = 8\nforward_ms = [2, 3, 3, 3, 4, 3, 3, 5]\nbackward_input_ms = 4\n"
    "backward_weight_ms = 3\np2p_bytes = 4e6\nparameters = 2e7\nmicro_batch = 2\n";

// Clusters: NVSwitch, NVLinks and slow Ethernet, PCIe, one device per node, leaves and spines, a slow device.
inline constexpr const char* kOneNode = "[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n";
inline constexpr const char* kTwoNodes = "[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n";
inline constexpr const char* kEthernet = "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 2\n";
inline constexpr const char* kThreeNodes = "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 3\n";
inline constexpr const char* kPcie = "[cluster]\npreset = \"p100x4-25gbe\"\nnodes = 2\n";
inline constexpr const char* kSingles =
    "[cluster]\nnodes = 4\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\nnic_gbps = 25\n"
    "pcie_gb_per_s = 31.5\ncpu_cores = 64\ncpu_gb_per_s = 204.8\n"
    "[cluster.fabric]\nkind = \"switch\"\nlatency_us = 5\n";
inline constexpr const char* kProcessors = "[cluster]\npreset = \"cpu-cluster\"\nnodes = 4\n";
inline constexpr const char* kSpines =
    "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 4\nkind = \"leaf-spine\"\nnodes_per_leaf = 2\n"
    "oversubscription = 4\nlatency_us = 1\n";
inline constexpr const char* kSlowDevice =
    "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 2\nslow = [{device = 3, factor = 0.6}]\n";
inline constexpr const char* kSlowLink =
    "[cluster]\npreset = \"p100x4-25gbe\"\nnodes = 2\nslow = [{link = \"node1.nic0\", factor = 0.3}]\n";

// Search spaces, each with many values of a few settings.
inline const SpaceLimits kDegrees = {{"training.micro_batch", {"1", "2", "4"}},
                                     {"strategy.bucket_mb", {"25"}},
                                     {"strategy.all_reduce", {"auto"}},
                                     {"strategy.schedule", {"1f1b"}},
                                     {"strategy.zero_stage", {"0"}},
                                     {"training.recompute", {"none"}}};
inline const SpaceLimits kOrders = {{"strategy.tensor", {"1", "2"}},
                                    {"strategy.context", {"1"}},
                                    {"strategy.sequence_parallel", {"true", "false"}},
                                    {"strategy.pipeline", {"2", "4"}},
                                    {"training.micro_batch", {"1", "2"}},
                                    {"strategy.bucket_mb", {"25"}},
                                    {"strategy.all_reduce", {"ring"}},
                                    {"strategy.zero_stage", {"0"}},
                                    {"training.recompute", {"none"}}};
inline const SpaceLimits kGradients = {
    {"strategy.tensor", {"1", "2"}}, {"strategy.sequence_parallel", {"false"}},
    {"strategy.context", {"1"}},     {"strategy.pipeline", {"1", "2"}},
    {"training.micro_batch", {"2"}}, {"strategy.schedule", {"1f1b"}},
    {"training.recompute", {"none"}}};
inline const SpaceLimits kMemory = {{"strategy.tensor", {"1", "2", "4"}},
                                    {"strategy.sequence_parallel", {"true"}},
                                    {"strategy.context", {"1"}},
                                    {"strategy.pipeline", {"1", "2", "4"}},
                                    {"training.micro_batch", {"1", "4"}},
                                    {"strategy.schedule", {"1f1b"}},
                                    {"strategy.bucket_mb", {"25"}},
                                    {"strategy.all_reduce", {"auto"}},
                                    {"strategy.zero_stage", {"0", "1", "3"}},
                                    {"training.recompute", {"none", "full"}}};

inline const SpaceLimits kExperts = {
    {"strategy.tensor", {"1", "2"}},      {"strategy.sequence_parallel", {"false"}},
    {"strategy.context", {"1"}},          {"strategy.pipeline", {"1", "2"}},
    {"strategy.expert", {"1", "2", "8"}}, {"strategy.schedule", {"1f1b"}},
    {"training.micro_batch", {"1", "3"}}, {"strategy.bucket_mb", {"25"}},
    {"strategy.all_reduce", {"auto"}},    {"strategy.zero_stage", {"0", "1", "3"}},
    {"training.recompute", {"none"}}};
inline const SpaceLimits kExpertMemory = {{"strategy.tensor", {"1", "2", "4"}},
                                          {"strategy.sequence_parallel", {"true"}},
                                          {"strategy.context", {"1"}},
                                          {"strategy.pipeline", {"1", "2"}},
                                          {"strategy.expert", {"1", "4"}},
                                          {"strategy.expert_tensor", {"0"}},
                                          {"strategy.schedule", {"1f1b"}},
                                          {"training.micro_batch", {"3"}},
                                          {"strategy.bucket_mb", {"25"}},
                                          {"strategy.all_reduce", {"auto"}},
                                          {"strategy.zero_stage", {"0", "1", "3"}},
                                          {"training.recompute", {"none", "full"}}};
inline const SpaceLimits kImageSpace = {
    {"strategy.pipeline", {"1", "2"}},         {"strategy.schedule", {"1f1b", "gpipe"}},
    {"training.micro_batch", {"8", "16"}},     {"strategy.bucket_mb", {"25"}},
    {"strategy.all_reduce", {"auto", "ring"}}, {"strategy.zero_stage", {"0", "1"}},
    {"training.recompute", {"none", "full"}},  {"training.recompute_layers", {"4"}}};
inline const SpaceLimits kNetworkSpace = {
    {"strategy.tensor", {"1", "2", "4"}},       {"strategy.schedule", {"1f1b", "zb-h1"}},
    {"training.micro_batch", {"4", "8", "20"}}, {"strategy.bucket_mb", {"25"}},
    {"strategy.zero_stage", {"0", "1"}},        {"training.recompute", {"none"}}};
inline const SpaceLimits kProfiledSpace = {{"strategy.pipeline", {"1", "2", "4"}},
                                           {"strategy.bucket_mb", {"25"}},
                                           {"strategy.all_reduce", {"auto"}},
                                           {"strategy.zero_stage", {"0", "1"}}};

struct OptimalCase {
  const char* model;
  const char* training;  // keys of [training] that the search does not choose
  const char* cluster;
  const char* rest;  // other TOML tables
  const SpaceLimits& limits;
  double memory_mib = 0;  // of a device, without a reserve; 0: the cluster's, less a reserve for CUDA
  std::string text() const {
    std::string all = std::string(model) + "[training]\n" + training + cluster;
    if (memory_mib > 0)
      all += "[cluster.node.device.memory_gib]\nvalue = " + std::to_string(memory_mib / 1024) + "\n";
    return all + rest;
  }
};

inline const OptimalCase kOptimalCases[] = {
    {kGpt, "global_batch = 24\n", kOneNode, "", kDegrees},
    {kGpt, "global_batch = 24\n", kEthernet, "", kDegrees},
    {kGpt, "global_batch = 36\n", kThreeNodes, "", kDegrees},
    {kGpt, "global_batch = 48\noptimizer = \"sgd\"\n", kSpines, "", kDegrees},
    {kGpt, "global_batch = 24\nprecision = \"fp32\"\n", kPcie, "", kDegrees},
    {kGpt, "global_batch = 40\n", kSlowDevice, "", kDegrees},
    {kGpt, "global_batch = 24\nframework = \"megatron-2022\"\n", kTwoNodes, "", kGradients},
    {kGpt, "global_batch = 12\n", kSingles, "", kOrders},
    {kGpt, "global_batch = 20\n", kSingles, "[simulation]\nprotocol = \"ideal\"\n", kOrders},
    {kGpt, "global_batch = 8\nprecision = \"fp32\"\n", kProcessors, "[simulation]\nprotocol = \"tcp\"\n",
     kOrders},
    {kGpt, "global_batch = 24\n", kOneNode, "", kMemory, 100},
    {kGpt, "global_batch = 24\n", kEthernet, "", kMemory, 120},
    {kGpt, "global_batch = 24\noptimizer = \"momentum\"\n", kEthernet, "", kMemory, 90},
    {kGpt, "global_batch = 48\n", kPcie, "", kMemory, 80},
    {kGpt, "global_batch = 24\n", kEthernet, "[strategy]\noverlap = false\n", kGradients},
    {kGpt, "global_batch = 24\n", kEthernet, "[strategy]\nchannels = 1\n", kGradients},
    {kGpt, "global_batch = 24\n", kOneNode, "[strategy]\ntensor_overlap = \"chunks\"\n", kDegrees},
    {kDeepGpt, "global_batch = 14\n", kEthernet, "", kOrders},
    {kDeepGpt, "global_batch = 24\n", kSingles, "", kGradients},
    {kDeepGpt, "global_batch = 40\n", kSingles, "", kOrders},
    {kDeepGpt, "global_batch = 56\noptimizer = \"sgd\"\n", kPcie, "", kGradients},
    {kDeepGpt, "global_batch = 24\ngradient_precision = \"fp32\"\n", kThreeNodes, "", kGradients},
    {kDeepGpt, "global_batch = 24\n", kSlowLink, "", kOrders},
    {kDeepGpt, "global_batch = 32\n", kOneNode, "", kMemory, 110},
    {kDeepGpt, "global_batch = 32\n", kEthernet, "[strategy]\nblocking_p2p = true\n", kOrders},
    {kDeepGpt, "global_batch = 24\nframework = \"megatron-2021\"\n", kOneNode, "", kOrders},
    {kLlama, "global_batch = 8\n", kOneNode, "", kDegrees},
    {kLlama, "global_batch = 12\n", kThreeNodes, "", kDegrees},
    {kLlama, "global_batch = 16\n", kTwoNodes, "", kGradients},
    {kLlama, "global_batch = 8\n", kEthernet, "", kDegrees},
    {kLlama, "global_batch = 8\n", kSingles, "", kOrders},
    {kLlama, "global_batch = 8\n", kEthernet, "", kMemory, 1500},
    {kLlama, "global_batch = 8\n", kTwoNodes, "", kMemory, 700},
    {kLlama, "global_batch = 16\nframework = \"torchtitan-2024\"\n", kTwoNodes, "", kGradients},
    {kLlama, "global_batch = 8\n", kOneNode, "[strategy]\nscatter_gather = true\n", kDegrees},
    {kLlama, "global_batch = 8\n", kSpines, "", kGradients},
    {kLlama, "global_batch = 8\nsequence_length = 4096\n", kSlowDevice, "", kDegrees},
    {kLlama, "global_batch = 8\nsequence_length = 1024\n", kPcie, "", kGradients},
    {kMixture, "global_batch = 24\n", kOneNode, "", kExperts},
    {kMixture, "global_batch = 24\n", kEthernet, "", kExperts},
    {kMixture, "global_batch = 48\n", kTwoNodes, "", kExperts},
    {kMixture, "global_batch = 12\n", kSingles, "", kExperts},
    {kMixture, "global_batch = 24\n", kOneNode, "", kExpertMemory, 220},
    {kMixture, "global_batch = 24\noptimizer = \"sgd\"\n", kPcie, "", kExperts},
    {kMixture, "global_batch = 24\n", kSlowDevice, "", kExperts},
    {kImages, "global_batch = 512\noptimizer = \"momentum\"\nprecision = \"fp32\"\n", kEthernet, "",
     kImageSpace},
    {kImages, "global_batch = 768\noptimizer = \"momentum\"\n", kThreeNodes, "", kImageSpace},
    {kImages, "global_batch = 192\noptimizer = \"momentum\"\nprecision = \"fp32\"\n", kPcie, "", kImageSpace},
    {kImages, "global_batch = 256\n", kOneNode, "", kImageSpace, 900},
    {kImages, "global_batch = 512\noptimizer = \"sgd\"\n", kSpines, "", kImageSpace},
    {kImages, "global_batch = 320\n", kSlowDevice, "", kImageSpace, 1800},
    {kPerceptron, "global_batch = 96\nprecision = \"fp32\"\n", kProcessors,
     "[simulation]\nprotocol = \"tcp\"\n", kNetworkSpace},
    {kPerceptron, "global_batch = 600\nprecision = \"fp32\"\noptimizer = \"sgd\"\n", kEthernet, "",
     kNetworkSpace},
    {kPerceptron, "global_batch = 480\noptimizer = \"momentum\"\n", kThreeNodes, "", kNetworkSpace},
    {kPerceptron, "global_batch = 256\n", kPcie, "", kNetworkSpace, 150},
    {kPerceptron, "global_batch = 160\n", kOneNode, "", kNetworkSpace},
    {kProfiled, "global_batch = 48\n", kEthernet, "", kProfiledSpace},
    {kProfiled, "global_batch = 24\noptimizer = \"sgd\"\n", kSingles, "", kProfiledSpace},
    {kProfiled, "global_batch = 80\n", kSlowDevice, "", kProfiledSpace},
    {kProfiled, "global_batch = 64\n", kOneNode, "", kProfiledSpace},
};

}  // namespace rehearse::testing
