// Declares the operations that transformers need besides those of Arithmetic, on fp32 arrays.
#pragma once

#include "backend/training/arithmetic.hpp"
#include "backend/training/token_order.hpp"

namespace rehearse {

// `rows` pieces of `width` elements, `stride` apart; the first one begins at element `first` of the array.
struct Strips {
  Array array;
  long first = 0, stride = 0;
};

// The tokens of a micro-batch on a rank: `batch` samples of `sequence` tokens each, the first of which has
// number `first` in `order`.
struct TokenRows {
  long batch = 1, sequence = 1, first = 0;
  TokenOrder order;
  long count() const { return batch * sequence; }
};

// `rows` rows of `width` elements, `stride` apart.
struct NormRows {
  long rows = 0, width = 0, stride = 0;
  bool centred = true;  // a layer norm; else an RMS norm, which has no offset
};

struct NormArrays {
  Array input, gain, offset;  // offset: only for layer norms
  Array statistics;           // two per row: its mean and 1 / standard deviation
};

// The dropout of one site in the model. Which elements are dropped depends only on the seed, the site, the
// number of the sample and the element's index in that sample, so that ranks that do the same work drop the
// same elements.
struct Dropout {
  float probability = 0;  // 0: no dropout
  std::uint64_t seed = 0;
  std::uint32_t site = 0;
  Array samples;  // the sample numbers of the batch
};

// The shape of attention. Queries are [batch, sequence, kv_heads, queries, head]; the first token has number
// `first` in `order`. Keys and values share an array, [batch, held, kv_heads, head + value_head]; their first
// token has number `held_first`. They are all `keys` of a sample or, in ring attention, those of one rank at
// a time.
struct AttentionShape {
  long batch = 1, sequence = 1, first = 0, keys = 1, kv_heads = 1, queries = 1, head = 1, value_head = 1;
  long window = 0;  // number of keys that a query sees, ending with its own; 0: all
  // For dropout, positions in the complete model: the first key-value head and query head of this rank, and
  // the number of queries per key-value head.
  long first_kv_head = 0, first_query = 0, all_queries = 1;
  TokenOrder order;
  long held_first = 0, held = 1;
  bool begins = true, ends = true;  // whether the present keys are the first, or the last, of the ring
  long heads() const { return batch * kv_heads * queries * sequence; }  // of all queries
};

// A part of each head that is rotated by its token's position: `width` of `stride` elements, for `heads`
// heads.
struct RotaryShape {
  TokenRows tokens;
  long heads = 1, stride = 1, width = 1;
};

enum class Activation { gelu, relu };

// A router that chooses `chosen` of `experts` experts for each of `tokens` tokens.
struct RouterShape {
  long tokens = 0, experts = 1, chosen = 1;
};

// Experts with room for every token: rows [experts, tokens, width], of which a token uses those of its
// experts.
struct ExpertRows {
  long tokens = 0, experts = 1, width = 1;
};

// Results overwrite the destination, unless `accumulate` adds them to it. All operations are deterministic.
class TransformerArithmetic {
public:
  virtual ~TransformerArithmetic() = default;

  virtual void copy_pieces(int stream, long rows, long width, const Strips& from, const Strips& to) = 0;

  // y[r] = table[tokens[r] - first_row], or 0 if another rank has that row. `width` is that of a row.
  virtual void look_up(int stream, const Array& tokens, long first_row, long width, const Array& table,
                       const Array& y) = 0;
  virtual void look_up_backward(int stream, const Array& tokens, long first_row, long width, const Array& dy,
                                const Array& table_gradient, bool accumulate) = 0;
  // y = x + table[offset + position].
  virtual void add_positions(int stream, const TokenRows& tokens, long offset, const Array& x,
                             const Array& table, const Array& y) = 0;
  virtual void positions_backward(int stream, const TokenRows& tokens, long offset, long width,
                                  const Array& dy, const Array& table_gradient, bool accumulate) = 0;

  // Layer norm: Ba, Kiros and Hinton 2016. RMS norm: Zhang and Sennrich 2019. Both use an epsilon of 1e-5.
  virtual void norm(int stream, const NormRows& rows, const NormArrays& arrays, const Array& y) = 0;
  virtual void norm_backward(int stream, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                             const Array& dx) = 0;
  virtual void norm_gradients(int stream, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                              const Array& gain_gradient, const Array& offset_gradient, bool accumulate) = 0;

  // Rotates with base 10000 (Su et al., "RoFormer", 2021); element i of a head is paired with element i +
  // width / 2, as in Llama. `back` rotates in the opposite direction.
  virtual void rotate(int stream, const RotaryShape& shape, bool back, const Array& x) = 0;

  // GELU in Hendrycks and Gimpel's tanh form, as in Megatron-LM.
  virtual void activate(int stream, Activation kind, const Array& x, const Array& y) = 0;
  virtual void activate_backward(int stream, Activation kind, const Array& x, const Array& dy,
                                 const Array& dx) = 0;
  // y = silu(gate) x (Shazeer, "GLU Variants Improve Transformer", 2020).
  virtual void gate(int stream, const Array& gate, const Array& x, const Array& y) = 0;
  virtual void gate_backward(int stream, const Array& gate, const Array& x, const Array& dy,
                             const Array& gate_gradient, const Array& dx) = 0;

  // y = x / (1 - probability), or 0 for dropped elements (Srivastava et al. 2014).
  virtual void drop(int stream, const TokenRows& tokens, const Dropout& dropout, const Array& x,
                    const Array& y) = 0;

  // Computes causal attention: softmax(Q K^T / sqrt(head)) V. `shares` [heads, keys] gets the softmax before
  // dropout, for the backward pass. `sums` [heads, 2] carries state between the steps of a ring; y and shares
  // are complete after the last step (Liu et al., "Ring Attention", 2023, section 3: sums are rescaled when
  // larger scores arrive).
  virtual void attend(int stream, const AttentionShape& shape, const Dropout& dropout, const Array& q,
                      const Array& kv, const Array& shares, const Array& sums, const Array& y) = 0;
  // `slopes` must be as large as `shares`. dq and dkv get the contributions of the present keys.
  virtual void attend_backward(int stream, const AttentionShape& shape, const Dropout& dropout,
                               const Array& q, const Array& kv, const Array& shares, const Array& y,
                               const Array& dy, const Array& slopes, const Array& dq, const Array& dkv) = 0;

  // token_losses(): for each token, ln of its sum of exponentials, plus its maximum, minus its label's logit.
  // token_losses_backward(): the gradients of `scale` times the sum of losses with respect to these sums and
  // logits.
  virtual void token_losses(int stream, const RowSums& rows, const Array& losses) = 0;
  virtual void token_losses_backward(int stream, const RowSums& rows, float scale, const Array& dsums,
                                     const Array& dlabel_logits) = 0;
  // Computes the gradient of this rank's logits [tokens, classes] from those of their sums and of the label's
  // logit.
  virtual void logits_backward(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                               const Array& dsums, const Array& dlabel_logits, const Array& dlogits) = 0;

  // gates[t, e] is the softmax over the `chosen` largest logits, 0 for the other experts (Jiang et al.,
  // "Mixtral of Experts", 2024, section 2.1). Of equal logits, the first is chosen.
  virtual void choose(int stream, const RouterShape& shape, const Array& logits, const Array& gates) = 0;
  virtual void choose_backward(int stream, const RouterShape& shape, const Array& gates, const Array& dgates,
                               const Array& dlogits) = 0;
  // spread_rows() copies each token's row x[t] to its experts' rows y[e, t], unchanged or times its gate;
  // other rows are 0. gather_rows() computes y[t], the sum of the rows x[e, t] of its experts. gate_slopes()
  // computes the gradients of the gates by which x[e, t] was weighted.
  virtual void spread_rows(int stream, const ExpertRows& shape, bool weighted, const Array& gates,
                           const Array& x, const Array& y) = 0;
  virtual void gather_rows(int stream, const ExpertRows& shape, bool weighted, const Array& gates,
                           const Array& x, const Array& y) = 0;
  virtual void gate_slopes(int stream, const ExpertRows& shape, const Array& gates, const Array& x,
                           const Array& dy, const Array& dgates) = 0;
  // scale_rows(): y[r] = factors[r] x[r]. row_products(): factors[r] is the inner product of rows x[r] and
  // y[r].
  virtual void scale_rows(int stream, const Array& factors, const Array& x, const Array& y) = 0;
  virtual void row_products(int stream, const Array& x, const Array& y, const Array& factors) = 0;
};

}  // namespace rehearse
