// What the parts of a transformer's layer share: the sizes of its tensors, norms and biases.
#pragma once

#include <vector>

#include "models/kernels.hpp"
#include "models/layer_writer.hpp"

namespace rehearse {

// On one device, in segments of one kind: dimensions that axes split are divided by their degrees.
struct Sizes {
  double element, samples, sequence, tokens, hidden, inner, heads, experts, vocabulary;
  double head, value_head;  // widths of one head's queries and keys, and of its values
  double queries, keys;     // widths of all of them: keys are fewer if heads share them
  double values, context;   // and of the values, and of what attention makes of them for all heads
  double keys_length;       // keys of a sample that attention reads: where the sequence is split, of all
  double activation;        // bytes of one tensor [tokens, hidden]
  double bytes(double width) const { return element * tokens * width; }  // of one tensor [tokens, width]
  double key_bytes(double width) const { return element * samples * keys_length * width; }
};

// A transformer's layer while it is being written.
struct TransformerWriter {
  const Transformer& t;
  const PassShape& pass;
  LayerWriter layer;

  TransformerWriter(const Transformer& shape, const PassShape& of, std::string name, bool gradient = true);
  Sizes sizes(SegmentKind kind) const;
  double whole_context() const;                // width of what attention makes of all heads, on all devices
  Value value(Dims dims, double width) const;  // [tokens, width], whole
  // The dimensions [batch, sequence, hidden].
  Value tokens() const { return value({Dim::batch, Dim::sequence, Dim::hidden}, t.hidden); }
};

// A norm of `width` elements a token, in rows of `row` (`parameters`: of its gain and offset). Forward reads
// x and writes y. Backward reads x and dy and writes dx; a second kernel reads x and dy again for the
// gradients of gain and offset. An RMS norm moves the same.
void add_norm(LayerCost& layer, const Sizes& z, double width, double row, double parameters);
// A segment with that of [tokens, hidden]; returns its output.
int add_norm(TransformerWriter& to, int input);

// A linear layer's bias; `fused` says that another kernel adds it.
void add_bias(LayerCost& layer, const Sizes& z, double width, bool fused);

// From a layer's normalised input to what the output projection returns. `local`: with the sliding window.
int add_attention(TransformerWriter& to, int input, bool local);

// The feed-forward of a layer, dense or a mixture of experts; returns its output.
int add_feed_forward(TransformerWriter& to, int input, bool experts);

void add_gelu(LayerCost& layer, double bytes);

// The first layer, and the last one: final norm, logits of all tokens, loss; BERT's pooler and
// masked-language-model transform.
Layer embedding_layer(const Transformer& t, const PassShape& pass);
Layer head_layer(const Transformer& t, const PassShape& pass);

}  // namespace rehearse
