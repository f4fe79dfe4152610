// The operations that transformers take besides those of Arithmetic, on arrays in fp32.
#pragma once

#include "backend/training/arithmetic.hpp"
#include "backend/training/token_order.hpp"

namespace rehearse {

// `rows` pieces of `width` elements, `stride` apart, the first one `first` elements into the array.
struct Strips {
  Array array;
  long first = 0, stride = 0;
};

// Tokens of a micro-batch on a rank: `batch` samples of `sequence` tokens each, the first of which is number
// `first` of its sample in `order`.
struct TokenRows {
  long batch = 1, sequence = 1, first = 0;
  TokenOrder order;
  long count() const { return batch * sequence; }
};

// Rows of `width` elements, `stride` apart.
struct NormRows {
  long rows = 0, width = 0, stride = 0;
  bool centred = true;  // a layer norm; else an RMS norm, which has no offset
};

struct NormArrays {
  Array input, gain, offset;  // offset: of layer norms
  Array statistics;           // two a row: its mean and 1 / deviation
};

// Which elements are dropped follows from the seed, the place in the model, the number of the sample and the
// element's number in that sample alone, so that ranks which do the same work drop the same.
struct Dropout {
  float probability = 0;  // 0: nothing is
  std::uint64_t seed = 0;
  std::uint32_t site = 0;
  Array samples;  // their numbers, one for each of the batch
};

// Queries are [batch, sequence, kv_heads, queries, head]; their tokens start at position `first` of `order`.
// Keys and values share an array, [batch, held, kv_heads, head + value_head]; their tokens start at position
// `held_first`. They are all `keys` of a sample or, in ring attention, those of one rank at a time.
struct AttentionShape {
  long batch = 1, sequence = 1, first = 0, keys = 1, kv_heads = 1, queries = 1, head = 1, value_head = 1;
  long window = 0;  // keys that a query sees, its own the last; 0: all
  // Of the model's heads, for dropout: the first key-value head here, and queries of all of one.
  long first_kv_head = 0, first_query = 0, all_queries = 1;
  TokenOrder order;
  long held_first = 0, held = 1;
  bool begins = true, ends = true;  // the keys at hand are the first ones, or the last ones
  long heads() const { return batch * kv_heads * queries * sequence; }  // of all queries
};

// A part of each head that is turned by its token's position: `width` of `stride` elements, of `heads` heads.
struct RotaryShape {
  TokenRows tokens;
  long heads = 1, stride = 1, width = 1;
};

enum class Activation { gelu, relu };

// Experts that a router chooses for each of `tokens`.
struct RouterShape {
  long tokens = 0, experts = 1, chosen = 1;
};

// Experts with room for every token: rows [experts, tokens, width], of which a token has those of its
// experts.
struct ExpertRows {
  long tokens = 0, experts = 1, width = 1;
};

// Results replace what was there, unless `accumulate` adds them to it. All operations are deterministic.
class TransformerArithmetic {
public:
  virtual ~TransformerArithmetic() = default;

  virtual void copy_pieces(int stream, long rows, long width, const Strips& from, const Strips& to) = 0;

  // y[r] = table[tokens[r] - first_row], or 0 where that row is not here. `width`: of a row.
  virtual void look_up(int stream, const Array& tokens, long first_row, long width, const Array& table,
                       const Array& y) = 0;
  virtual void look_up_backward(int stream, const Array& tokens, long first_row, long width, const Array& dy,
                                const Array& table_gradient, bool accumulate) = 0;
  // y = x + table[offset + position].
  virtual void add_positions(int stream, const TokenRows& tokens, long offset, const Array& x,
                             const Array& table, const Array& y) = 0;
  virtual void positions_backward(int stream, const TokenRows& tokens, long offset, long width,
                                  const Array& dy, const Array& table_gradient, bool accumulate) = 0;

  // Layer norm: Ba, Kiros and Hinton 2016. RMS norm: Zhang and Sennrich 2019. epsilon 1e-5.
  virtual void norm(int stream, const NormRows& rows, const NormArrays& arrays, const Array& y) = 0;
  virtual void norm_backward(int stream, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                             const Array& dx) = 0;
  virtual void norm_gradients(int stream, const NormRows& rows, const NormArrays& arrays, const Array& dy,
                              const Array& gain_gradient, const Array& offset_gradient, bool accumulate) = 0;

  // Su et al., "RoFormer", 2021, with base 10000; element i of a head is turned together with i + width / 2,
  // as in Llama. `back`: the other way round.
  virtual void rotate(int stream, const RotaryShape& shape, bool back, const Array& x) = 0;

  // GELU in Hendrycks and Gimpel's form with tanh, which Megatron-LM computes.
  virtual void activate(int stream, Activation kind, const Array& x, const Array& y) = 0;
  virtual void activate_backward(int stream, Activation kind, const Array& x, const Array& dy,
                                 const Array& dx) = 0;
  // y = silu(gate) x (Shazeer, "GLU Variants Improve Transformer", 2020).
  virtual void gate(int stream, const Array& gate, const Array& x, const Array& y) = 0;
  virtual void gate_backward(int stream, const Array& gate, const Array& x, const Array& dy,
                             const Array& gate_gradient, const Array& dx) = 0;

  // y = x, but for what is dropped, over 1 - probability (Srivastava et al. 2014).
  virtual void drop(int stream, const TokenRows& tokens, const Dropout& dropout, const Array& x,
                    const Array& y) = 0;

  // Causal: softmax(Q K^T / sqrt(head)) V. `shares` [heads, keys]: the softmax, for the backward pass, before
  // its dropout. `sums` [heads, 2]: between the parts of a ring. y and shares are complete behind the last
  // one (Liu et al., "Ring Attention", 2023, section 3: sums are rescaled as larger scores come).
  virtual void attend(int stream, const AttentionShape& shape, const Dropout& dropout, const Array& q,
                      const Array& kv, const Array& shares, const Array& sums, const Array& y) = 0;
  // `slopes`: room for as much as `shares`. dq and dkv are what the keys at hand give to them.
  virtual void attend_backward(int stream, const AttentionShape& shape, const Dropout& dropout,
                               const Array& q, const Array& kv, const Array& shares, const Array& y,
                               const Array& dy, const Array& slopes, const Array& dq, const Array& dkv) = 0;

  // Of each token, ln of its sum of exponentials, plus its maximum, minus its label's logit; and the
  // gradients of `scale` times the sum of losses by those sums and logits.
  virtual void token_losses(int stream, const RowSums& rows, const Array& losses) = 0;
  virtual void token_losses_backward(int stream, const RowSums& rows, float scale, const Array& dsums,
                                     const Array& dlabel_logits) = 0;
  // The gradient of the logits [tokens, classes] here by those of their sums and of the label's logit.
  virtual void logits_backward(int stream, const Array& logits, const RowLabels& labels, const Array& maxima,
                               const Array& dsums, const Array& dlabel_logits, const Array& dlogits) = 0;

  // gates[t, e]: the softmax over the `chosen` largest of the logits, 0 for the other experts (Jiang et al.,
  // "Mixtral of Experts", 2024, section 2.1). Of equal logits the first is chosen.
  virtual void choose(int stream, const RouterShape& shape, const Array& logits, const Array& gates) = 0;
  virtual void choose_backward(int stream, const RouterShape& shape, const Array& gates, const Array& dgates,
                               const Array& dlogits) = 0;
  // Each token's row x[t] to its experts' y[e, t], as it is or times its gate; other rows are 0. And y[t],
  // the sum of its experts' rows x[e, t]; and the gradients of gates by which x[e, t] was weighted.
  virtual void spread_rows(int stream, const ExpertRows& shape, bool weighted, const Array& gates,
                           const Array& x, const Array& y) = 0;
  virtual void gather_rows(int stream, const ExpertRows& shape, bool weighted, const Array& gates,
                           const Array& x, const Array& y) = 0;
  virtual void gate_slopes(int stream, const ExpertRows& shape, const Array& gates, const Array& x,
                           const Array& dy, const Array& dgates) = 0;
  // y[r] = factors[r] x[r], of rows; and factors[r] = the inner product of two rows.
  virtual void scale_rows(int stream, const Array& factors, const Array& x, const Array& y) = 0;
  virtual void row_products(int stream, const Array& x, const Array& y, const Array& factors) = 0;
};

}  // namespace rehearse
