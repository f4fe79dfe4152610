// Declares the readers of a scenario's sections; read_scenario.cpp calls them in the order of their
// dependencies.
#pragma once

#include "models/text/document.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/scenario/reading/overrides.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Applies the assignments to the document in order, but those that name a preset or a file come first.
void apply_overrides(Document& document, const std::string& base_folder, const Overrides& overrides);

// Returns the preset that `key` of a section names, from the presets of `folder`. Throws InputError with the
// nearest name if there is none.
Document named_preset(const Section& section, std::string_view key, const std::string& name,
                      std::string_view folder);

// Parses [data], after adding to the document what its presets say. Without the section, input takes no time.
// Defaults: PyTorch's loader, samples in the memory of the nodes, preparation that takes no time; the bytes
// of a sample follow from the model if it reads tokens.
Data read_data(Document& document, const Model& model, double sequence_length);
// Parses [checkpoint], after adding to the document what its presets say. Adds to `storages` that of the data
// and those that checkpoints are written to.
Checkpoint read_checkpoint(Document& document, const Data& data, std::vector<Storage>& storages);
// Refuses storage without a bandwidth, be it its own or that of the nodes' NVMe drives.
void refuse_unknown_bandwidth(const Data& data, const Checkpoint& checkpoint, const Cluster& cluster,
                              Document& document);

// Parses [training]. Defaults: micro_batch 1; precision the first of bf16, fp16, fp32 for which the device
// has a peak; gradient_precision and activation_precision as the training precision stores them (tf32: fp32,
// fp8: bf16); optimizer adam; recompute none; attention default_attention(). global_batch has no default,
// because it affects what the model learns.
Training read_training(Section& section, const Model& model, const Device& device,
                       const Framework& framework);

// Returns the first of bf16, fp16, fp32 for which the device has a peak.
Precision default_precision(const Device& device);

// Parses [cost]. Omitted values come from the price list that it names, or from the shipped one.
CostTerms read_cost(Section& section, const Cluster& cluster, const std::string& base_folder);

// Parses [strategy] except settings that depend on the cluster. Defaults: 1f1b, ring all-reduce, DDP's 25 MB
// buckets, overlapped.
StrategyChoice read_strategy(Section& section);

// Completes `data` and `pipeline` from the number of devices, and checks them, stage_layers and the servers.
// If one degree is omitted, it follows from the other; if both are, all devices are data-parallel (profiled:
// as many stages as were measured).
void fit_strategy(StrategyChoice& strategy, Section& section, const Scenario& scenario);

// Returns global_batch / (micro_batch x data); refuses a result that is not an integer.
int count_microbatches(const Training& training, const StrategyChoice& strategy, Section& section);

// Refuses more recompute_layers than any stage has. Call it once the stages are known.
void fit_recompute_layers(Section& section, const Scenario& scenario);

// Returns the complete scenario as TOML: the document `root` as it was before anything was derived from it,
// with the contents of the model, cluster and device files to which it refers. `read` is the document after
// it was read, in which omitted keys are filled in from these files.
std::string scenario_text(TomlValue root, const TomlValue& read, const std::string& base_folder,
                          const Scenario& scenario);

}  // namespace rehearse
