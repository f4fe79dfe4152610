// Provides questions for the planner's tests, with models small enough to simulate entire spaces.
#pragma once

#include <string>

#include "simulator/commands/plan/plan_simulation.hpp"
#include "simulator/commands/plan/plan_worlds.hpp"
#include "simulator/planner/plan_search.hpp"

namespace rehearse::testing {

struct PlannerCase {
  const char* name;
  const char* text;  // text of a scenario file
};

// Covers every kind of model, cluster and training that makes a difference to plans.
inline const PlannerCase kPlannerCases[] = {
    {"transformer on one node",
     "[model.transformer]\nlayers = 6\nhidden = 512\nheads = 8\nvocabulary = 8192\nsequence_length = 512\n"
     "[training]\nglobal_batch = 32\n[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n"},
    {"transformer on two nodes",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\n[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n"},
    {"long sequences",
     "[model.transformer]\nlayers = 4\nhidden = 1024\nheads = 16\nkv_heads = 4\nrotary = true\n"
     "vocabulary = 32000\nsequence_length = 16384\ntied_embeddings = false\n"
     "[training]\nglobal_batch = 8\n[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n"},
    {"mixture",
     "[model.transformer]\nlayers = 4\nhidden = 512\nheads = 8\nvocabulary = 8192\nsequence_length = 512\n"
     "experts = 8\nexperts_per_token = 2\n"
     "[training]\nglobal_batch = 32\n[cluster]\npreset = \"dgx-a100\"\nnodes = 2\n"},
    {"images on few devices",
     "[model]\npreset = \"resnet50\"\n[training]\nglobal_batch = 512\noptimizer = \"momentum\"\n"
     "precision = \"fp32\"\n[cluster]\npreset = \"workstation-10gbe\"\nnodes = 4\n"},
    {"framework that issues kernels",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\nframework = \"megatron-2022\"\n"
     "[cluster]\npreset = \"dgx-a100\"\nnodes = 2\n"},
    {"tied table on a stage of few parameters",
     "[model.transformer]\nlayers = 7\nhidden = 256\nheads = 4\nvocabulary = 32000\nsequence_length = 256\n"
     "[training]\nglobal_batch = 24\ngradient_precision = \"fp32\"\n"
     "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 3\n"},
    {"tensor ranks that send beside products",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\n"
     "[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n"
     "[strategy]\ntensor_overlap = \"weight-gradients\"\n"},
    {"products in chunks beside their transfers",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\nframework = \"megatron-bridge-2025\"\n"
     "[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n"
     "[strategy]\ntensor_overlap = \"chunks\"\n"},
    {"mixture with pairs of passes side by side",
     "[model.transformer]\nlayers = 4\nhidden = 512\nheads = 8\nvocabulary = 8192\nsequence_length = "
     "512\nexperts = 8\nexperts_per_token = 2\n"
     "[training]\nglobal_batch = 32\n"
     "[cluster]\npreset = \"dgx-h100\"\nnodes = 2\n"
     "[strategy]\noverlap_passes = true\n"},
    {"no overlap",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\n"
     "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 2\n"
     "[strategy]\noverlap = false\n"},
    {"activations sent in parts",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\n"
     "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 2\n"
     "[strategy]\nscatter_gather = true\n"},
    {"transfers that hold up passes",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 64\n"
     "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 2\n"
     "[strategy]\nblocking_p2p = true\n"},
    {"contexts of every kind",
     "[model.transformer]\nlayers = 4\nhidden = 1024\nheads = 16\nkv_heads = 4\nrotary = true\nvocabulary = "
     "32000\nsequence_length = 16384\n"
     "[training]\nglobal_batch = 8\nframework = \"torchtitan-2024\"\n"
     "[cluster]\npreset = \"dgx-h100\"\nnodes = 1\n"},
    {"measured layers",
     "[model.profiled]\nlayers = 8\nforward_ms = [2, 3, 3, 3, 4, 3, 3, 5]\nbackward_input_ms = "
     "4\nbackward_weight_ms = 3\np2p_bytes = 4e6\nparameters = 2e7\nmicro_batch = 2\n"
     "[training]\nglobal_batch = 96\n"
     "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 2\n"},
    {"processors on TCP",
     "[model]\npreset = \"mlp\"\n"
     "[training]\nglobal_batch = 64\nprecision = \"fp32\"\noptimizer = \"sgd\"\n"
     "[cluster]\npreset = \"cpu-cluster\"\nnodes = 4\n"
     "[simulation]\nprotocol = \"tcp\"\n"},
    {"slow device on an oversubscribed fabric",
     "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 32000\nsequence_length = "
     "1024\n"
     "[training]\nglobal_batch = 48\n"
     "[cluster]\npreset = \"workstation-10gbe\"\nnodes = 4\nkind = \"leaf-spine\"\nnodes_per_leaf = "
     "2\noversubscription = 4\nslow = [{device = 5, factor = 0.6}]\n"},
};

inline PlanQuestion question_of(const PlannerCase& c) {
  return plan_question(c.text, std::string(c.name) + ".toml", {});
}

inline PlanWorld world_of(const PlanQuestion& question) {
  PlanWorld world;
  world.name = "world";
  world.question = question;
  return world;
}

inline PlanSearch search_of(const PlanQuestion& question, const SpaceLimits& limits,
                            double most_bytes = 1e18) {
  return PlanSearch(question.scenario, limits, most_bytes, std::nullopt,
                    [&](const CoreChoice& split) { return refusal(question, split); });
}

}  // namespace rehearse::testing
