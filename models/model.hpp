// Describes a model to train: a chain of layers, each with its parameters, the kernels of its passes and its
// activations.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/framework_kernels.hpp"
#include "models/kernel.hpp"
#include "models/precision.hpp"
#include "models/segment_kind.hpp"
#include "models/text/document.hpp"
#include "models/transformer_shape.hpp"

namespace rehearse {

// What the backward pass recomputes. selective: unfused attention. operators: everything except fused
// attention, reductions over tensor ranks, and every second matrix product (see kept_operators.cpp).
enum class Recompute { none, selective, operators, full };
inline constexpr std::array<std::string_view, 4> kRecomputeNames = {"none", "selective", "operators", "full"};

// Ranks in a ring, each with a part of the sequence, that pass on their keys and values (Liu et al., "Ring
// Attention with Blockwise Transformers", 2023).
struct AttentionRing {
  int ranks = 1;
  // Each rank holds two parts, one from either end of the sequence, so that causal attention takes equally
  // long on all ranks.
  bool zigzag = true;
};

// How one pass of the model is divided: everything that a layer's costs depend on.
struct PassShape {
  double micro_batch = 1;      // samples
  double sequence_length = 0;  // tokens per sample; 0: the model's own
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  Splits splits = {};  // by the axes that share a layer's work
  AttentionRing ring = {};
  AttentionKernels attention = AttentionKernels::unfused;
  double expert_capacity = 1;  // rows that experts compute per row that a router sends them
  // Traffic per parameter to add a micro-batch's gradients to the previous ones, in separate kernels after
  // the products; 0: the products accumulate them.
  double accumulation_bytes = 0;
  // Number of tokens per sample whose logits a masked language model computes; 0: all.
  double predicted_tokens = 0;
  FrameworkKernels kernels = {};
  double loss_bytes = 0;  // traffic per output that the loss reads, both passes; 0: that of unfused kernels
};

// The costs of one layer for one micro-batch on one device.
struct LayerCost {
  std::string name;
  double parameters = 0;  // elements
  std::vector<Kernel> forward;
  std::vector<Kernel> recompute;        // repeated before the backward pass (empty without recomputation)
  std::vector<Kernel> backward_input;   // gradient of the input
  std::vector<Kernel> backward_weight;  // gradient of the weights
  double output_bytes = 0;  // the activation passed to the next layer (its gradient has the same size)
  double saved_bytes = 0;   // activations saved from the forward to the backward pass
  // The most bytes that a pass holds at once beside what is saved, received and passed on.
  double working_bytes = 0;
  double logits = 0;        // elements of the outputs that the loss reads
  // The part of saved_bytes that the loss saves: the softmax in fp32, or the logits that it overwrites.
  double loss_saved_bytes = 0;
};

// The shapes of models beside transformers. The .cpp files give the sources of formulas.
struct Convolution {  // one layer of a convolutional network; `kind` determines which fields apply
  enum class Kind {
    convolution,
    linear,
    max_pool,
    average_pool,
    norm,
    activation,
    add,
    concatenate  // the outputs of `branches` branches with the same input
  } kind = Kind::convolution;
  std::string name;
  double in_channels = 0, out_channels = 0, kernel = 1, stride = 1, padding = 0;
  double in_size = 0, out_size = 0;  // height = width of the feature map
  double kernel_width = 0;           // if the kernel is not square
  double branches = 0;               // for concatenate
  bool bias = false;
  bool input_kept = false;  // an earlier layer in the block reads and saves the same input
};
struct ConvolutionalNet {
  double image_size = 224, channels = 3, classes = 1000;
  // Blocks group layers so that pipeline stages never split a residual connection.
  struct Block {
    std::string name;
    std::vector<Convolution> layers;
  };
  std::vector<Block> blocks;
};
struct MultiLayerPerceptron {
  std::vector<double> widths;  // input, hidden..., output
};
struct ProfiledModel {  // measured times: [model.profiled]
  // If set, its parts are layers, which the pipeline divides like those of other models; otherwise they are
  // the stages of one pipeline.
  bool has_layers = false;
  std::vector<double> forward_s, backward_input_s, backward_weight_s;  // one per part
  std::vector<double> p2p_bytes;   // bytes that each part passes to the next
  std::vector<double> parameters;  // elements per part; can be empty
  std::vector<std::string> names;  // of the parts; can be empty
  // Number of kernels in the times of each part that the device's process must launch; empty: the times
  // include launches.
  std::vector<double> forward_kernels, backward_kernels;
  // Samples for which the times (but not the number of kernels) and p2p_bytes were measured; they scale in
  // proportion to the micro-batch. 0: not given, the values apply to every micro-batch.
  double micro_batch = 0;
  // Time of the optimizer step and the number of kernels it launches; 0: computed from the device's memory
  // bandwidth.
  double optimizer_s = 0, optimizer_kernels = 0;
  // How long the device waits in each part of a pass for what the schedule does not have (synchronisations,
  // work of the process beside its launches), for data at the beginning of a forward pass, and in the update.
  // These do not scale with the micro-batch. The arrays can be empty.
  std::vector<double> forward_wait_s, backward_wait_s;
  double data_wait_s = 0, optimizer_wait_s = 0;
  // Standard deviation of the times of the pipeline stages as a fraction of their mean, if the given times
  // are those of a mean stage (simulator/strategies/layout/stage_spread.hpp); 0: the times are those of each
  // stage.
  double stage_deviation = 0;
};

// A part of a published model that is not simulated, such as a vision encoder.
struct LeftOut {
  std::string what;       // "the vision encoder"
  double parameters = 0;  // elements; 0: not known
};

struct Model {
  std::string name;         // e.g. "gpt3-175b"
  std::string title;        // e.g. "GPT-3 175B"
  std::string sample_unit;  // "sequences", "images" or "samples"
  std::variant<Transformer, ConvolutionalNet, MultiLayerPerceptron, ProfiledModel> shape;
  std::vector<std::string> sources;  // where its dimensions come from
  std::vector<std::string> notes;    // what the model leaves out, in full sentences for the result
  std::vector<LeftOut> left_out = {};

  // Here they are only declared: many sources copy it, and each would compile the copy again.
  Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;
  ~Model();
};
inline bool is_profiled(const Model& model) {
  return std::holds_alternative<ProfiledModel>(model.shape);
}

// Reads the [model] section of a scenario, which must have exactly one of preset, file, transformer,
// convolutional, multi_layer_perceptron and profiled, and finishes it. `base_folder` is the base of relative
// file names.
Model read_model(Section& section, const std::string& base_folder);
Model model_preset(const std::string& name);  // throws InputError if there is none, with "did you mean"

// Returns the layers of one micro-batch, in the order of the forward pass.
std::vector<LayerCost> layer_costs(const Model& model, const PassShape& pass);

double parameter_count(const Model& model);         // elements; shared ones count once
double active_parameter_count(const Model& model);  // elements used for one token: not all experts
// FLOPs of the forward and backward pass for one sample, without recomputation; only matrix products count.
double flops_per_sample(const Model& model, double sequence_length);
double tokens_per_sample(const Model& model, double sequence_length);  // 0 if the model has no tokens
// Bytes of one sample of the batch: tokens of 8 bytes (PyTorch's int64), or pixels or features in the
// precision of training. 0 for a profile, whose sample size is not known.
double sample_bytes(const Model& model, double sequence_length, Precision precision);

}  // namespace rehearse
