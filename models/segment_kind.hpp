// The kinds of segments that layers consist of, the dimensions of their tensors, and the number of shards of
// each dimension.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace rehearse {

// Dimensions of tensors, along each of which a tensor may be sharded. `routed`: the rows that a router sends
// to experts (they combine batch and sequence). `keys`: the sequence dimension of the keys and values that
// attention reads. `queries`: the query heads of one key-value head.
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

// A layer is cut into segments wherever a parallel axis may change a tensor's placement.
enum class SegmentKind : std::uint8_t {
  embedding,    // looks tokens up in the vocabulary's table
  position,     // looks positions or token types up, and adds them
  norm,         // over the hidden dimension
  dense,        // a product that no axis splits by its weights' dimensions
  pooler,       // of the first token of each sample
  query,        // products to the queries; where both are split alike, to keys and values too
  query_norm,   // of each head's queries (and keys, where they come from one product)
  key_value,    // products to keys and values
  key_norm,     // of each head's keys
  latent,       // products to compressed vectors, and their norms (multi-head latent attention)
  latent_up,    // products from them to heads
  attention,    // softmax(Q K^T) V
  projection,   // product back to the hidden dimension
  residual,     // what is added to it: bias, dropout, the residual itself
  up,           // feed-forward: to the inner dimension, and the activation function
  down,         // and back
  router,       // chooses experts
  dispatch,     // tokens in order of their experts
  expert_up,    // as up, of each expert
  expert_down,  // as down
  combine,      // the experts' results, weighed and back in order of the tokens
  logits,       // product to the vocabulary
  maximum,      // of each token's logits
  sums,         // of their exponentials, and the logit that is asked for
  loss,         // of each token, and its mean
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
// Those of its input number `input` (0, 1, ...), which is a tensor of dimensions `value`: attention reads the
// sequence of its keys and values as `keys`.
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
