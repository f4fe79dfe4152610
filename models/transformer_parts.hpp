// What the parts of a transformer's layer share: the sizes of its tensors, norms and biases.
#pragma once

#include <vector>

#include "models/kernels.hpp"

namespace rehearse {

struct Sizes {
  double element, samples, sequence, tokens, hidden, inner, heads;
  double head, value_head;  // widths of one head's queries and keys, and of its values
  double queries, keys;     // widths of all of them: keys are fewer if heads share them
  double values, context;   // and of the values, and of what attention makes of them for all heads
  double activation;        // bytes of one tensor [tokens, hidden]
  double bytes(double width) const { return element * tokens * width; }  // of one tensor [tokens, width]
};
Sizes sizes_of(const Transformer& t, const PassShape& pass);

// A norm over `width` elements a token (`parameters`: of its gain and offset). Forward reads x and writes y.
// Backward reads x and dy and writes dx; a second kernel reads x and dy again for the gradients of gain and
// offset. An RMS norm moves the same.
void add_norm(LayerCost& layer, const Sizes& z, double width, double parameters);
// That of a layer's input.
void add_norm(LayerCost& layer, const Transformer& t, const Sizes& z);

// A linear layer's bias; `fused` says that another kernel adds it.
void add_bias(LayerCost& layer, const Sizes& z, double width, bool fused);

// From the layer's normalised input to what the output projection returns. `local`: with the sliding window.
void add_attention(LayerCost& layer, const Transformer& t, const Sizes& z, bool local);
// What selective recomputation repeats: softmax(Q K^T) V.
std::vector<Kernel> attention_forward(const Transformer& t, const Sizes& z, bool local);
// Bytes that attention keeps for its backward pass besides its input.
double saved_by_attention(const Transformer& t, const Sizes& z, bool local, Recompute recompute);

}  // namespace rehearse
