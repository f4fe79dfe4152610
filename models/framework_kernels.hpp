// Describes in what a framework's kernels and tensors differ from those of fused kernels.
#pragma once

namespace rehearse {

// Properties in which a framework's kernels differ from fused ones. Bytes are traffic of the forward and
// backward pass together, per 16-bit element; 0 means fused kernels.
struct FrameworkKernels {
  double norm_bytes = 0;    // per element of a norm's input
  double rotary_bytes = 0;  // per element of the queries and keys that are rotated
  double gate_bytes = 0;    // per element of the inner width, moved by the gated activation function
  // Traffic to scale and cast each element of a product's input or of its output's gradient to 8 bits or
  // fewer; 0: included in the efficiency of such products.
  double cast_bytes = 0;
  bool wide_logits = false;    // the product that computes the logits casts no operands
  bool expanded_keys = false;  // keys and values are repeated for each query head before attention
  // Recomputation ends after the last tensor that the backward pass reads, and what it gathers is held until
  // then.
  bool autograd_checkpoints = false;
  // For mixtures of experts. routed_cast_bytes: as cast_bytes, for casts of routed rows by kernels that the
  // efficiency of products does not include. routed_copies: number of copies of the rows on their way to the
  // experts and back, beyond the first. fused_experts: the experts' products also apply the activation
  // function and cast their results.
  double routed_cast_bytes = 0, routed_copies = 0;
  bool fused_experts = false;
  // Traffic, forward and backward together, of the kernels that weigh the bias of the experts' second product
  // and add it, per element of the result; 0: the product's kernel adds it.
  double expert_bias_bytes = 0;
  // What experts save for the backward pass is copied to a stash and back, because the next layer reuses
  // buffers for a number of rows that is not known beforehand.
  bool stashed_experts = false;
  // How much longer fused attention takes with learned sinks, as traffic per score inside the causal mask,
  // forward and backward together, whatever the window; 0: no longer.
  double sink_bytes = 0;
  // Memory in bytes per 16-bit element; 0: that of fused kernels. loss_peak_bytes: the most that logits,
  // their copies and gradients take at once, per logit (6). norm_saved_bytes: what a norm and the product
  // behind it save per element of the norm's input (4). gate_saved_bytes: what a gated activation function
  // and the product behind it save per element of the inner width (6).
  double loss_peak_bytes = 0, norm_saved_bytes = 0, gate_saved_bytes = 0;
  // Results of the experts' activation function are weighted with the router's probabilities, so that results
  // of the experts need not be saved for the gradients of these; one that is not gated saves both.
  bool weighted_activations = false;
  // Queries are saved as a view of the product that made them, which keeps its keys and values, too.
  bool packed_queries = false;
};

}  // namespace rehearse
