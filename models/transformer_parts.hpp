// Provides what the parts of a transformer layer share: the sizes of its tensors, norms and biases.
#pragma once

#include <vector>

#include "models/kernels.hpp"
#include "models/layer_writer.hpp"

namespace rehearse {

inline constexpr double kMask = 1;  // bytes per element of a dropout mask

// Sizes on one device, in segments of one kind: split dimensions are divided by the degrees of their axes.
struct Sizes {
  double element, samples, sequence, tokens, hidden, inner, heads, experts, vocabulary;
  double head, value_head;  // widths of one head's queries and keys, and of its values
  double queries, keys;     // total widths; keys are narrower if heads share them
  double values, context;   // total widths of the values, and of attention's result for all heads
  double keys_length;  // keys per sample that attention reads; all of them, even if the sequence is split
  double activation;   // bytes of one tensor [tokens, hidden]
  double bytes(double width) const { return element * tokens * width; }  // of one tensor [tokens, width]
  double key_bytes(double width) const { return element * samples * keys_length * width; }
};

// A transformer layer that is being written.
struct TransformerWriter {
  const Transformer& t;
  const PassShape& pass;
  LayerWriter layer;

  TransformerWriter(const Transformer& shape, const PassShape& of, std::string name, bool gradient = true);
  Sizes sizes(SegmentKind kind) const;
  double whole_context() const;                // width of attention's result for all heads, on all devices
  Value value(Dims dims, double width) const;  // [tokens, width], unsplit
  // A value with the dimensions [batch, sequence, hidden].
  Value tokens() const { return value({Dim::batch, Dim::sequence, Dim::hidden}, t.hidden); }
};

// Adds a norm of `width` elements per token, in rows of `row` elements; `parameters` is the size of its gain
// and offset. The forward pass reads x and writes y. The backward pass reads x and dy and writes dx; a second
// kernel reads x and dy again for the gradients of gain and offset. An RMS norm has the same traffic.
void add_norm(LayerCost& layer, const Sizes& z, double width, double row, double parameters);
// Adds a segment with a norm of [tokens, hidden]; returns its output.
int add_norm(TransformerWriter& to, int input);

// Adds the bias of a linear layer; `fused`: another kernel adds it.
void add_bias(LayerCost& layer, const Sizes& z, double width, bool fused);

// Adds attention, from the layer's normalized input to the result of the output projection, which it returns.
// `local`: uses the sliding window; `rotary`: rotates queries and keys.
int add_attention(TransformerWriter& to, int input, bool local, bool rotary);

// Adds the feed-forward of a layer, dense or a mixture of experts; returns its output.
int add_feed_forward(TransformerWriter& to, int input, bool experts);

void add_gelu(LayerCost& layer, double bytes);

// Return the first and the last layer. The last one has the final norm, the logits of all tokens and the
// loss; for BERT also the pooler and the masked language model's transform.
Layer embedding_layer(const Transformer& t, const PassShape& pass);
Layer head_layer(const Transformer& t, const PassShape& pass);

}  // namespace rehearse
