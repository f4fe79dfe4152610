// Defines the kinds of segments that layers consist of, the dimensions of their tensors, and the number of
// shards of each dimension.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace rehearse {

// Dimensions along which a tensor can be sharded. `routed`: the rows that a router sends to experts (they
// combine batch and sequence). `keys`: the sequence dimension of the keys and values that attention reads.
// `queries`: the query heads per key-value head.
enum class Dim : std::uint8_t {
  batch,
  sequence,
  keys,
  hidden,
  kv_heads,
  queries,
  head,
  inner,
  vocabulary,
  experts,
  routed,
  latent,
};
inline constexpr std::size_t kDims = 12;
inline constexpr std::array<std::string_view, kDims> kDimNames = {
    "batch", "sequence", "keys",       "hidden",  "kv_heads", "queries",
    "head",  "inner",    "vocabulary", "experts", "routed",   "latent"};

// A set of dimensions.
class Dims {
public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<Dim> dims) {
    for (const Dim dim : dims) bits_ |= 1U << static_cast<unsigned>(dim);
  }
  constexpr bool has(Dim dim) const { return (bits_ >> static_cast<unsigned>(dim) & 1U) != 0; }
  constexpr Dims with(Dim dim) const { return Dims(bits_ | 1U << static_cast<unsigned>(dim)); }
  constexpr Dims without(Dim dim) const { return Dims(bits_ & ~(1U << static_cast<unsigned>(dim))); }
  constexpr bool operator==(const Dims&) const = default;

private:
  constexpr explicit Dims(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

// A layer is divided into segments wherever a parallel axis can change a tensor's placement.
enum class SegmentKind : std::uint8_t {
  embedding,    // looks up tokens in the vocabulary's table
  position,     // looks up positions or token types and adds them
  norm,         // over the hidden dimension
  dense,        // a product that no axis splits by its weights' dimensions
  pooler,       // of the first token of each sample
  query,        // products to the queries, and to keys and values too if these are split identically
  query_norm,   // of each head's queries (and keys, if one product computes both)
  key_value,    // products to keys and values
  key_norm,     // of each head's keys
  latent,       // products to compressed vectors, and their norms (multi-head latent attention)
  latent_up,    // products from the compressed vectors to heads
  attention,    // softmax(Q K^T) V
  projection,   // product back to the hidden dimension
  residual,     // what is added to its result: bias, dropout, the residual
  up,           // feed-forward: product to the inner dimension, and the activation function
  down,         // product back to the hidden dimension
  router,       // chooses experts
  dispatch,     // sorts tokens by their experts
  expert_up,    // like up, for each expert
  expert_down,  // like down, for each expert
  combine,      // the weighted sum of the experts' results, back in the order of the tokens
  logits,       // product to the vocabulary
  maximum,      // maximum of each token's logits
  sums,         // sum of their exponentials, and the logit of the target token
  loss,         // loss of each token, and the mean loss
  block,        // anything else: convolutional blocks, measured stages
};
inline constexpr std::size_t kSegmentKinds = 26;
inline constexpr std::array<std::string_view, kSegmentKinds> kSegmentNames = {
    "embedding", "position", "norm",   "dense",     "pooler",    "query",       "query norm",
    "key-value", "key norm", "latent", "latent up", "attention", "projection",  "residual",
    "up",        "down",     "router", "dispatch",  "expert up", "expert down", "combine",
    "logits",    "maximum",  "sums",   "loss",      "block"};

// The dimensions of a segment's weights.
Dims parameter_dims(SegmentKind kind);
// The dimensions of a segment's input number `input` (0, 1, ...), for a tensor with dimensions `value`:
// attention reads the sequence of its keys and values as `keys`.
Dims input_dims(SegmentKind kind, int input, Dims value);

// The number of shards of each dimension in each kind of segment, over all parallel axes.
class Splits {
public:
  Splits() {
    for (auto& dims : of_) dims.fill(1);
  }
  int of(SegmentKind kind, Dim dim) const {
    return of_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(dim)];
  }
  void multiply(SegmentKind kind, Dim dim, int degree) {
    of_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(dim)] *= degree;
  }

private:
  std::array<std::array<int, kDims>, kSegmentKinds> of_;
};

}  // namespace rehearse
