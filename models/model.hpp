// What is trained: a chain of layers, each with its parameters, the kernels of its passes and its
// activations.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/kernel.hpp"
#include "models/precision.hpp"
#include "models/segment_kind.hpp"
#include "models/text/document.hpp"

namespace rehearse {

// What the backward pass recomputes. selective: unfused attention. operators: everything except fused
// attention, reductions over tensor ranks, and every second matrix product (see kept_operators.cpp).
enum class Recompute { none, selective, operators, full };
inline constexpr std::array<std::string_view, 4> kRecomputeNames = {"none", "selective", "operators", "full"};

// Ranks in a ring, each with a share of the sequence, that pass their keys and values on (Liu et al., "Ring
// Attention with Blockwise Transformers", 2023).
struct AttentionRing {
  int ranks = 1;
  // Each rank holds two shares, one from either end of the sequence, so that causal attention takes all of
  // them equally long.
  bool zigzag = true;
};

// In what a framework's kernels differ from fused ones; bytes are moved forward and backward together, for
// each element in 16 bits, and 0 means fused kernels.
struct FrameworkKernels {
  double norm_bytes = 0;    // of a norm's input
  double rotary_bytes = 0;  // of the queries and keys that are turned by their position
  double gate_bytes = 0;    // of the inner width, by the gated activation function
  // Moved to scale and cast each element of a product's input or of its output's gradient to 8 bits or fewer;
  // 0: the efficiency of such products contains it.
  double cast_bytes = 0;
  bool wide_logits = false;    // the product that makes the logits casts no operands
  bool expanded_keys = false;  // keys and values are repeated for each query head before attention
  // Recomputation ends behind the last tensor that the backward pass reads, and what it gathers is held until
  // then.
  bool autograd_checkpoints = false;
  // Of a mixture: casts of routed rows, as cast_bytes, by kernels that the efficiency of products does not
  // contain; how often rows are copied on their way to experts, and back, beyond once; and whether the
  // products of experts apply the activation function and cast what they return themselves.
  double routed_cast_bytes = 0, routed_copies = 0;
  bool fused_experts = false;
  // What experts keep for the backward pass is copied to a stash, and back, as buffers for a number of rows
  // that is not known beforehand are used again by the next layer.
  bool stashed_experts = false;
};

// How one pass of the model is cut: what a layer's costs depend on.
struct PassShape {
  double micro_batch = 1;      // samples
  double sequence_length = 0;  // tokens a sample; 0: the model's own
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  Splits splits = {};  // by the axes that share a layer's work
  AttentionRing ring = {};
  AttentionKernels attention = AttentionKernels::unfused;
  double expert_capacity = 1;  // rows that experts compute for each row that a router sends them
  // Bytes moved for each parameter to add a micro-batch's gradients to those before, in kernels of their own
  // behind the products; 0: the products add them up.
  double accumulation_bytes = 0;
  // Tokens of a sample whose logits a masked language model computes; 0: all.
  double predicted_tokens = 0;
  FrameworkKernels kernels = {};
  double loss_bytes = 0;  // moved for each output that the loss reads, both ways; 0: as unfused kernels do
};

// One layer for one micro-batch, on one device.
struct LayerCost {
  std::string name;
  double parameters = 0;  // elements
  std::vector<Kernel> forward;
  std::vector<Kernel> recompute;        // run again before backward (empty without recomputation)
  std::vector<Kernel> backward_input;   // gradient of the input
  std::vector<Kernel> backward_weight;  // gradient of the weights
  double output_bytes = 0;  // the activation handed to the next layer (its gradient has the same size)
  double saved_bytes = 0;   // activations kept from forward to backward
  double logits = 0;        // elements of the outputs that the loss reads
};
inline constexpr double kSoftmaxBytes =
    4;  // for each logit the loss keeps the softmax in fp32, in saved_bytes

// Shapes that models are made of. Sources of formulas stand in the .cpp files. Each field of a transformer is
// a key of [model.transformer] (models/transformer_keys.cpp).
struct Transformer {
  int layers = 0;
  double hidden = 0, heads = 0, feed_forward = 0;  // feed_forward: inner width, 4 x hidden if not given
  double vocabulary = 0, sequence_length = 0;
  // The longest sequence that the model accepts, where sequence_length is a choice below it; 0: not known.
  double context_limit = 0;
  double positions = 0;         // learned position embeddings; 0: none
  double position_offset = 0;   // OPT: rows of their table in front of the first position
  double token_types = 0;       // BERT's segment embeddings; 0: none
  double embedding_width = 0;   // of the token embedding, projected to and from hidden (OPT 350M); 0: hidden
  bool causal = true;           // predicts the next token; else it has logits only with masked_lm_head
  bool tied_embeddings = true;  // output layer shares the input embedding, which the first layer counts
  bool final_norm = true;       // GPT: a last layer norm
  bool embedding_norm = false;  // BERT (instead of the last one) and BLOOM: a layer norm after the embedding
  bool pooler = false, masked_lm_head = false;  // BERT; with both comes the next-sentence classifier

  // Attention. Widths of one head: of its queries and keys (0: hidden / heads), of its values (0: the same).
  double head_dim = 0, value_head_dim = 0;
  double kv_heads = 0;           // grouped-query attention: key and value heads; 0: as many as heads
  bool rotary = false;           // queries and keys are turned by their position
  bool qkv_biases = true;        // of the product to queries, keys and values
  bool qk_norm = false;          // an RMS norm of each head's queries and keys
  bool attention_sinks = false;  // GPT-OSS: one learned logit a head, in the denominator of its softmax
  bool attention_softcap = false, logit_softcap = false;  // Gemma 2: c tanh(x / c) of scores; of logits
  // Sliding window: keys that a query sees, in all layers but `full_attention_layers` (counted from 0);
  // 0: all keys in all layers.
  double window = 0;
  std::vector<int> full_attention_layers;
  // Multi-head latent attention: keys and values are products of a compressed vector of kv_lora_rank (0: this
  // is another attention), queries of one of q_lora_rank (0: of the layer's input). Of head_dim,
  // rope_head_dim is rotary; that part of the keys is shared by all heads.
  double kv_lora_rank = 0, q_lora_rank = 0, rope_head_dim = 0;

  bool gated = false;               // SwiGLU, GeGLU: a third matrix of the feed-forward gates its inner width
  bool relu = false;                // instead of GELU, where not gated
  bool parallel_residual = false;   // GPT-NeoX: attention and feed-forward read the same input
  bool post_norms = false;          // Gemma 2 and 3: norms after attention and feed-forward, too
  bool biases = true;               // of linear layers and norms
  std::optional<bool> norm_biases;  // where norms differ from that: an RMS norm has a gain only
  bool dropout = true;              // after the embedding, in attention and before each residual sum
  std::optional<bool> embedding_dropout, attention_dropout;  // where they differ from that

  // Mixture of experts: feed-forwards of `feed_forward` width side by side, of which a router gives each
  // token a few; 0: one for all tokens.
  double experts = 0, experts_per_token = 0;
  bool router_bias = false;
  double shared_expert = 0;        // inner width of one more that sees all tokens; 0: none
  bool shared_expert_gate = true;  // which weighs its result; else that is added as it is
  // Layers without experts, counted from 0, and the inner width of their feed-forward.
  std::vector<int> dense_layers;
  double dense_feed_forward = 0;

  double table_width() const { return embedding_width > 0 ? embedding_width : hidden; }
  double position_rows() const { return positions > 0 ? positions + position_offset : 0; }
};
struct Convolution {  // one layer of a convolutional network; kind says which fields count
  enum class Kind {
    convolution,
    linear,
    max_pool,
    average_pool,
    norm,
    activation,
    add,
    concatenate  // of `branches` that read the same input
  } kind = Kind::convolution;
  std::string name;
  double in_channels = 0, out_channels = 0, kernel = 1, stride = 1, padding = 0;
  double in_size = 0, out_size = 0;  // height = width of the feature map
  double kernel_width = 0;           // where it is not `kernel` high and wide
  double branches = 0;               // concatenate
  bool bias = false;
  bool input_kept = false;  // a layer before it in the block reads and keeps the same input
};
struct ConvolutionalNet {
  double image_size = 224, channels = 3, classes = 1000;
  // Blocks group layers, so that a pipeline is never cut inside a residual connection.
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
  // Its parts are layers, which the pipeline cuts as it cuts those of other models, or the stages of one
  // pipeline.
  bool has_layers = false;
  std::vector<double> forward_s, backward_input_s, backward_weight_s;  // one a part
  std::vector<double> p2p_bytes;                                       // what each part hands on
  std::vector<double> parameters;                                      // elements a part; may be empty
  std::vector<std::string> names;                                      // of the parts; may be empty
  // Kernels in the times of a part that the device's process has to launch; empty: the times contain that.
  std::vector<double> forward_kernels, backward_kernels;
  // Samples that the times, kernels aside, and p2p_bytes were measured with: those of other micro-batches are
  // taken to be in proportion. 0: not told, the values hold for every micro-batch.
  double micro_batch = 0;
  // Time of the optimizer step and the kernels it launches; 0: computed from the device's memory bandwidth.
  double optimizer_s = 0, optimizer_kernels = 0;
  // Standard deviation of the times of the pipeline's stages as a share of their mean, where the times given
  // are those of a mean stage (simulator/strategies/layout/stage_spread.hpp); 0: the times are each stage's.
  double stage_deviation = 0;
};

struct Model {
  std::string name;         // "gpt3-175b"
  std::string title;        // "GPT-3 175B"
  std::string sample_unit;  // "sequences", "images", "samples"
  std::variant<Transformer, ConvolutionalNet, MultiLayerPerceptron, ProfiledModel> shape;
  std::vector<std::string> sources;  // where its dimensions come from
  std::vector<std::string> notes;    // what of it is left out: whole sentences for the result
};

// Reads the [model] section of a scenario (preset, file, transformer, convolutional, multi_layer_perceptron
// or profiled: exactly one) and finishes it. `base_folder` is where relative file names start.
Model read_model(Section& section, const std::string& base_folder);
Model model_preset(const std::string& name);  // InputError if there is none, with "did you mean"

// The layers of one micro-batch, in order of the forward pass.
std::vector<LayerCost> layer_costs(const Model& model, const PassShape& shape);

double parameter_count(const Model& model);         // elements, shared ones once
double active_parameter_count(const Model& model);  // those that one token meets: not all experts
// FLOPs of forward and backward for one sample, without recomputation; matrix products only.
double flops_per_sample(const Model& model, double sequence_length);
double tokens_per_sample(const Model& model, double sequence_length);  // 0 if the model has no tokens
// Bytes of one sample of the batch: token numbers of 8 bytes (PyTorch's int64), pixels or features in the
// precision of training. 0 for a profile, which does not tell.
double sample_bytes(const Model& model, double sequence_length, Precision precision);

}  // namespace rehearse
