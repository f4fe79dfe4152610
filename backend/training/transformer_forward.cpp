// Computes the forward pass of a transformer's segments.
#include <algorithm>
#include <cmath>
#include <string>

#include "backend/training/transformer_network.hpp"
#include "models/text/error.hpp"

namespace rehearse {

void TransformerNetwork::product(const Call& c, const Array& x, WeightRole role, const Array& y) {
  const Array w = weight(c, role);
  const long rows = product_rows(x, y, w);
  // A table is stored as [outputs, inputs].
  arithmetic_.gemm(c.stream,
                   {rows, static_cast<long>(y.elements) / rows, static_cast<long>(x.elements) / rows}, false,
                   role == WeightRole::table, 1, x, w, 0, y);
}

void TransformerNetwork::add_bias(const Call& c, WeightRole role, const Array& y) {
  if (const Array bias = weight(c, role); bias.elements > 0) arithmetic_.add_bias(c.stream, y, bias, false);
}

void TransformerNetwork::forward(const Call& c) {
  switch (c.kind()) {
    case SegmentKind::embedding: {
      const Array table = weight(c, WeightRole::table), y = out(c);
      const long rows = static_cast<long>(table.elements) / std::lround(shape_.hidden);
      const Part part = shards_.part(c.kind(), Dim::vocabulary);
      return operations_->look_up(c.stream, tokens_[slot(c.step, c.microbatch)], part.number * rows,
                                  std::lround(shape_.hidden), table, y);
    }
    case SegmentKind::position:
      return operations_->add_positions(c.stream, token_rows(c), std::lround(shape_.position_offset), in(c),
                                        weight(c, WeightRole::positions), out(c));
    case SegmentKind::norm:
    case SegmentKind::query_norm:
    case SegmentKind::key_norm:
      return forward_norms(c);
    case SegmentKind::query:
    case SegmentKind::key_value:
      return forward_heads(c);
    case SegmentKind::attention: {
      const Array q = in(c, 0), kv = keys_at_hand(c);
      return operations_->attend(c.stream, attention_shape(c, q, kv), dropout(c), q, kv, saved(c, 0),
                                 ring_ranks(c) > 0 ? saved(c, 1) : Array{}, out(c));
    }
    case SegmentKind::projection:
      return product(c, in(c), WeightRole::projection, out(c));
    case SegmentKind::residual: {
      const Array y = out(c);
      arithmetic_.copy(c.stream, in(c, 0), y);
      add_bias(c, WeightRole::bias, y);
      if (const Dropout of = dropout(c); of.probability > 0)
        operations_->drop(c.stream, token_rows(c), of, y, y);
      if (c.what->inputs.size() > 1) arithmetic_.add(c.stream, in(c, 1), y);
      return;
    }
    case SegmentKind::up:
      return forward_up(c);
    case SegmentKind::down:
      return product(c, in(c), WeightRole::down, out(c));
    case SegmentKind::router:
    case SegmentKind::dispatch:
    case SegmentKind::expert_up:
    case SegmentKind::expert_down:
    case SegmentKind::combine:
      return forward_experts(c);
    case SegmentKind::logits:
      return product(c, in(c), WeightRole::table, out(c));
    case SegmentKind::maximum:
      return arithmetic_.row_maxima(c.stream, in(c), out(c));
    case SegmentKind::sums: {
      const Array logits = in(c, 0), maxima = in(c, 1);
      const auto classes = logits.elements / maxima.elements;
      const Part part = shards_.part(c.kind(), Dim::vocabulary);
      const std::size_t number = slot(c.step, c.microbatch);
      return arithmetic_.exponential_sums(c.stream, logits,
                                          {labels_[number], static_cast<std::size_t>(part.number) * classes},
                                          maxima, out(c, 0), out(c, 1));
    }
    case SegmentKind::loss: {
      // Uses the maxima with which the sums were computed.
      const Array sums = in(c, 0), label_logits = in(c, 1);
      const Array maxima = values_->input(c.stream, c.segment - 1, 1, c.microbatch);
      return operations_->token_losses(c.stream, {maxima, sums, label_logits},
                                       losses_[slot(c.step, c.microbatch)]);
    }
    default:
      throw RunError(std::string("no real computation of segments of kind ") +
                     std::string(kSegmentNames[static_cast<std::size_t>(c.kind())]));
  }
}

// Returns whether the segment rotates its output: the last segment before attention that makes queries or
// keys does.
bool TransformerNetwork::rotates(const Call& c) const {
  const bool norm = c.kind() == SegmentKind::query_norm || c.kind() == SegmentKind::key_norm;
  return shape_.rotary && norm == shape_.qk_norm;
}

void TransformerNetwork::rotate(const Call& c, bool keys, bool back, const Array& x) {
  const TokenRows rows = token_rows(c);
  const long stride = keys ? head_ + value_head_ : head_;
  operations_->rotate(c.stream, {rows, static_cast<long>(x.elements) / rows.count() / stride, stride, head_},
                      back, x);
}

void TransformerNetwork::forward_heads(const Call& c) {
  const Array x = in(c);
  for (std::size_t o = 0; o < c.what->outputs.size(); ++o) {
    const bool keys = o == 1 || c.kind() == SegmentKind::key_value;
    const Array y = out(c, static_cast<int>(o));
    product(c, x, keys ? WeightRole::key_value : WeightRole::query, y);
    add_bias(c, keys ? WeightRole::key_value_bias : WeightRole::query_bias, y);
    if (rotates(c)) rotate(c, keys, false, y);
  }
}

NormRows TransformerNetwork::norm_rows(const Call& c, const Array& x, bool keys) const {
  if (c.kind() == SegmentKind::norm) {
    const long width = std::lround(shape_.hidden);
    return {static_cast<long>(x.elements) / width, width, width, shape_.norm_biases.value_or(shape_.biases)};
  }
  const long stride = keys ? head_ + value_head_ : head_;
  return {static_cast<long>(x.elements) / stride, head_, stride, false};
}

void TransformerNetwork::forward_norms(const Call& c) {
  for (std::size_t o = 0; o < c.what->outputs.size(); ++o) {
    const bool keys = o == 1 || c.kind() == SegmentKind::key_norm;
    const Array x = in(c, static_cast<int>(o)), y = out(c, static_cast<int>(o));
    if (keys) arithmetic_.copy(c.stream, x, y);  // values are not normalized
    operations_->norm(c.stream, norm_rows(c, x, keys),
                      {x, weight(c, keys ? WeightRole::key_gain : WeightRole::gain),
                       weight(c, WeightRole::offset), saved(c, o)},
                      y);
    if (c.kind() != SegmentKind::norm && rotates(c)) rotate(c, keys, false, y);
  }
}

// Returns whether the segment adds the outputs of the routed experts and of the shared one; that is no
// residual sum, though it is computed like one.
bool TransformerNetwork::sums_experts(int segment) const {
  const auto kind = [&](int s) { return walk_.segments[static_cast<std::size_t>(s)]->kind; };
  return kind(segment) == SegmentKind::residual && segment >= 3 && kind(segment - 1) == SegmentKind::down &&
         kind(segment - 3) == SegmentKind::combine;
}

Dropout TransformerNetwork::dropout(const Call& c) const {
  constexpr float kProbability = 0.1F;  // as in GPT-2, BERT and Megatron-LM
  if (sums_experts(c.segment)) return {};
  const bool of_attention = c.kind() == SegmentKind::attention;
  const bool is = of_attention   ? shape_.attention_dropout.value_or(shape_.dropout)
                  : c.layer == 0 ? shape_.embedding_dropout.value_or(shape_.dropout)
                                 : shape_.dropout;
  if (!is) return {};
  // Numbers the site by residual sums, because the numbers of segments depend on the mesh.
  std::uint32_t number = 0;
  for (int s = c.segment - 1; s >= 0 && walk_.layer_of[static_cast<std::size_t>(s)] == c.layer; --s)
    if (walk_.segments[static_cast<std::size_t>(s)]->kind == c.kind() && !sums_experts(s)) ++number;
  constexpr std::uint32_t kSitesOfLayer = 8, kAttention = 4;
  return {kProbability, seed_,
          static_cast<std::uint32_t>(c.layer) * kSitesOfLayer + (of_attention ? kAttention : number),
          samples_[slot_at_work_[static_cast<std::size_t>(c.microbatch)]]};
}

Array TransformerNetwork::keys_at_hand(const Call& c) {
  const Array own = in(c, 1);
  return ring_ranks(c) > 0 ? ring(c.in_forward_pass).held(c.ring_step, own) : own;
}

AttentionShape TransformerNetwork::attention_shape(const Call& c, const Array& q, const Array& kv) const {
  const TokenRows rows = token_rows(c);
  AttentionShape s;
  s.batch = rows.batch;
  s.sequence = rows.sequence;
  s.first = rows.first;
  s.order = rows.order;
  s.keys = s.held = sizes_.sequence;
  if (const int ranks = ring_ranks(c); ranks > 0) {
    const Part own = shards_.part(c.kind(), Dim::sequence);
    s.held /= ranks;
    s.held_first = (own.number + ranks - c.ring_step) % ranks * s.held;
    s.begins = c.ring_step == 0;
    s.ends = c.ring_step + 1 == ranks;
  }
  s.head = head_;
  s.value_head = value_head_;
  s.kv_heads = static_cast<long>(kv.elements) / s.batch / s.held / (head_ + value_head_);
  s.queries = static_cast<long>(q.elements) / rows.count() / s.kv_heads / head_;
  s.first_kv_head = shards_.part(c.kind(), Dim::kv_heads).first(sizes_.kv_heads);
  s.first_query = shards_.part(c.kind(), Dim::queries).first(sizes_.queries);
  s.all_queries = sizes_.queries;
  const std::vector<int>& full = shape_.full_attention_layers;
  if (!std::binary_search(full.begin(), full.end(), c.layer - 1)) s.window = std::lround(shape_.window);
  return s;
}

void TransformerNetwork::forward_up(const Call& c) {
  const Array x = in(c), before = saved(c, 0), y = out(c);
  product(c, x, WeightRole::up, before);
  add_bias(c, WeightRole::up_bias, before);
  if (!shape_.gated)
    return operations_->activate(c.stream, shape_.relu ? Activation::relu : Activation::gelu, before, y);
  const Array gate = saved(c, 1);
  product(c, x, WeightRole::gate, gate);
  add_bias(c, WeightRole::gate_bias, gate);
  operations_->gate(c.stream, gate, before, y);
}

}  // namespace rehearse
