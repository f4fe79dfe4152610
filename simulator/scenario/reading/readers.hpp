// The readers of a scenario's sections; read_scenario.cpp calls them in the order in which they need each
// other.
#pragma once

#include "models/text/document.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Puts "--set" assignments into the document, in their order; those that name a preset or a file come first.
void apply_overrides(Document& document, const std::string& base_folder,
                     const std::vector<std::string>& overrides);

// [training]. Defaults: micro_batch 1; precision the first of bf16, fp16, fp32 that the device has a peak
// for; gradient_precision and activation_precision what the training precision stores (tf32: fp32, fp8:
// bf16); optimizer adam; recompute none; attention default_attention(). global_batch has no default: it
// decides what is learnt.
Training read_training(Section& section, const Model& model, const Device& device,
                       const Framework& framework);

// [cost]. What it leaves out comes from the list of prices that it names, or from the shipped one.
CostTerms read_cost(Section& section, const Cluster& cluster, const std::string& base_folder);

// [strategy] without what depends on the cluster. Defaults: 1f1b, ring all-reduce, DDP's 25 MB buckets,
// overlapped. A key of a feature that is not built may only have the value that turns the feature off.
StrategyChoice read_strategy(Section& section);

// Completes `data` and `pipeline` from the number of devices and checks them, stage_layers and the servers. A
// degree that is left out follows from the other; without both it is all data parallel (profiled: as many
// stages as were measured).
void fit_strategy(StrategyChoice& strategy, Section& section, const Scenario& scenario);

// global_batch / (micro_batch x data); refused if that is not whole.
int count_microbatches(const Training& training, const StrategyChoice& strategy, Section& section);

// Refuses more recompute_layers than any stage has, once the stages are known.
void fit_recompute_layers(Section& section, const Scenario& scenario);

// The whole scenario as TOML: the document `root` as it was before anything was derived from it, with the
// model, cluster and device files that it points to in place of their names. `read` is the document after it
// was read: what it leaves out is filled in there from what it names.
std::string scenario_text(TomlValue root, const TomlValue& read, const std::string& base_folder,
                          const Scenario& scenario);

}  // namespace rehearse
