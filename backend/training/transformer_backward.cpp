// Computes the backward pass of a transformer's segments: the gradients of their inputs and of their weights.
#include <cmath>

#include "backend/training/transformer_network.hpp"
#include "models/text/error.hpp"

namespace rehearse {

void TransformerNetwork::product_to_input(const Call& c, const Array& dy, WeightRole role, int input) {
  const GradientTarget target = values_->input_gradient(c.stream, c.segment, input, c.microbatch);
  if (!target.wanted) return;
  const Array w = weight(c, role);
  const long rows = product_rows(target.array, dy, w);
  const long inputs = static_cast<long>(target.array.elements) / rows,
             outputs = static_cast<long>(dy.elements) / rows;
  arithmetic_.gemm(c.stream, {rows, inputs, outputs}, false, role != WeightRole::table, 1, dy, w,
                   target.accumulate ? 1.0F : 0.0F, target.array);
}

void TransformerNetwork::product_to_weight(const Call& c, const Array& x, const Array& dy, WeightRole role) {
  const auto [dw, accumulate] = gradient(c, role);
  const long rows = product_rows(x, dy, dw);
  const long inputs = static_cast<long>(x.elements) / rows, outputs = static_cast<long>(dy.elements) / rows;
  const float beta = accumulate ? 1.0F : 0.0F;
  if (role == WeightRole::table)
    arithmetic_.gemm(c.stream, {outputs, inputs, rows}, true, false, 1, dy, x, beta, dw);
  else
    arithmetic_.gemm(c.stream, {inputs, outputs, rows}, true, false, 1, x, dy, beta, dw);
}

void TransformerNetwork::bias_to_weight(const Call& c, WeightRole role, const Array& dy) {
  if (const GradientOf bias = gradient(c, role); bias.array.elements > 0)
    arithmetic_.column_sums(c.stream, dy, bias.array, bias.accumulate);
}

void TransformerNetwork::backward_input(const Call& c) {
  switch (c.kind()) {
    case SegmentKind::embedding:
    case SegmentKind::maximum:
      return;
    case SegmentKind::position:
      return give(c, 0, [&](const Array& to) { arithmetic_.copy(c.stream, above(c), to); });
    case SegmentKind::norm:
    case SegmentKind::query_norm:
    case SegmentKind::key_norm:
      return backward_norms(c, false);
    case SegmentKind::query:
    case SegmentKind::key_value:
      return backward_heads(c, false);
    case SegmentKind::attention:
      return backward_attention(c);
    case SegmentKind::projection:
      return product_to_input(c, above(c), WeightRole::projection, 0);
    case SegmentKind::residual: {
      const Dropout of = dropout(c);
      give(c, 0, [&](const Array& to) {
        if (of.probability > 0)
          operations_->drop(c.stream, token_rows(c), of, above(c), to);
        else
          arithmetic_.copy(c.stream, above(c), to);
      });
      if (c.what->inputs.size() > 1)
        give(c, 1, [&](const Array& to) { arithmetic_.copy(c.stream, above(c), to); });
      return;
    }
    case SegmentKind::up:
      return backward_up(c, false);
    case SegmentKind::down:
      return product_to_input(c, above(c), WeightRole::down, 0);
    case SegmentKind::router:
    case SegmentKind::dispatch:
    case SegmentKind::expert_up:
    case SegmentKind::expert_down:
    case SegmentKind::combine:
      return backward_experts(c, false);
    case SegmentKind::logits:
      return product_to_input(c, above(c), WeightRole::table, 0);
    case SegmentKind::sums:
    case SegmentKind::loss:
      return backward_loss(c);
    default:
      throw RunError("a segment without a backward pass");
  }
}

void TransformerNetwork::backward_weight(const Call& c) {
  switch (c.kind()) {
    case SegmentKind::embedding:
      return write_table_gradient(c);
    case SegmentKind::position: {
      const auto [table, accumulate] = gradient(c, WeightRole::positions);
      return operations_->positions_backward(c.stream, token_rows(c), std::lround(shape_.position_offset),
                                             std::lround(shape_.hidden), above(c), table, accumulate);
    }
    case SegmentKind::norm:
    case SegmentKind::query_norm:
    case SegmentKind::key_norm:
      return backward_norms(c, true);
    case SegmentKind::query:
    case SegmentKind::key_value:
      return backward_heads(c, true);
    case SegmentKind::projection:
      return product_to_weight(c, in(c), above(c), WeightRole::projection);
    case SegmentKind::residual: {
      if (!find_weight(c.segment, WeightRole::bias)) return;
      Array dy = above(c);
      if (const Dropout of = dropout(c); of.probability > 0) {
        const Array kept = scratch(1, dy.elements);
        operations_->drop(c.stream, token_rows(c), of, dy, kept);
        dy = kept;
      }
      return bias_to_weight(c, WeightRole::bias, dy);
    }
    case SegmentKind::up:
      return backward_up(c, true);
    case SegmentKind::down:
      return product_to_weight(c, in(c), above(c), WeightRole::down);
    case SegmentKind::router:
    case SegmentKind::expert_up:
    case SegmentKind::expert_down:
      return backward_experts(c, true);
    case SegmentKind::logits:
      ++given_by_logits_;
      if (tied_->elements > 0) return write_tied_gradient(c);
      return product_to_weight(c, in(c), above(c), WeightRole::table);
    default:
      return;
  }
}

void TransformerNetwork::write_table_gradient(const Call& c) {
  const auto [table, accumulate] = gradient(c, WeightRole::table);
  const long width = std::lround(shape_.hidden), rows = static_cast<long>(table.elements) / width;
  const Part part = shards_.part(c.kind(), Dim::vocabulary);
  operations_->look_up_backward(c.stream, tokens_[slot(c.step, c.microbatch)], part.number * rows, width,
                                above(c), table, accumulate);
  // The table's gradient is sent after its last micro-batch.
  if (++given_by_embedding_ % microbatches_ == 0 && shares_table_ && given_by_logits_ != given_by_embedding_)
    throw RunError(
        "the gradient of a tied embedding would be sent before the logits' part of it is computed");
  if (!tied_filled_) return;
  arithmetic_.add(c.stream, tied_, table);
  tied_filled_ = false;
}

// Accumulates in a separate array: if each micro-batch's gradients are sent at once, those of the first layer
// may still be in transit when the last layer computes its next ones.
void TransformerNetwork::write_tied_gradient(const Call& c) {
  const Array x = in(c), dy = above(c), table = tied_;
  const long rows = product_rows(x, dy, table);
  arithmetic_.gemm(c.stream,
                   {static_cast<long>(dy.elements) / rows, static_cast<long>(x.elements) / rows, rows}, true,
                   false, 1, dy, x, tied_filled_ ? 1.0F : 0.0F, table);
  tied_filled_ = true;
}

// Rotates gradients of queries and keys back before they reach the product that made them.
void TransformerNetwork::backward_heads(const Call& c, bool of_weights) {
  for (std::size_t o = 0; o < c.what->outputs.size(); ++o) {
    const bool keys = o == 1 || c.kind() == SegmentKind::key_value;
    const WeightRole role = keys ? WeightRole::key_value : WeightRole::query;
    Array dy = above(c, static_cast<int>(o));
    if (rotates(c)) {
      const Array turned = scratch(1, dy.elements);
      arithmetic_.copy(c.stream, dy, turned);
      rotate(c, keys, true, turned);
      dy = turned;
    }
    if (!of_weights) {
      product_to_input(c, dy, role, 0);
      continue;
    }
    product_to_weight(c, in(c), dy, role);
    bias_to_weight(c, keys ? WeightRole::key_value_bias : WeightRole::query_bias, dy);
  }
}

void TransformerNetwork::backward_norms(const Call& c, bool of_weights) {
  for (std::size_t o = 0; o < c.what->outputs.size(); ++o) {
    const bool keys = o == 1 || c.kind() == SegmentKind::key_norm;
    const int number = static_cast<int>(o);
    const Array x = in(c, number);
    Array dy = above(c, number);
    if (c.kind() != SegmentKind::norm && rotates(c)) {
      const Array turned = scratch(1, dy.elements);
      arithmetic_.copy(c.stream, dy, turned);
      rotate(c, keys, true, turned);
      dy = turned;
    }
    const NormRows rows = norm_rows(c, x, keys);
    const NormArrays arrays{x, weight(c, keys ? WeightRole::key_gain : WeightRole::gain),
                            weight(c, WeightRole::offset), saved(c, o)};
    if (of_weights) {
      const auto [gain, accumulate] = gradient(c, keys ? WeightRole::key_gain : WeightRole::gain);
      const Array offset = rows.centred ? gradient(c, WeightRole::offset).array : Array{};
      operations_->norm_gradients(c.stream, rows, arrays, dy, gain, offset, accumulate);
      continue;
    }
    give(c, number, [&](const Array& to) {
      if (keys) arithmetic_.copy(c.stream, dy, to);
      operations_->norm_backward(c.stream, rows, arrays, dy, to);
    });
  }
}

void TransformerNetwork::backward_up(const Call& c, bool of_weights) {
  const Array dy = above(c), before = saved(c, 0), slope = scratch(1, dy.elements);
  if (shape_.gated) {
    const Array gate_slope = scratch(2, dy.elements);
    operations_->gate_backward(c.stream, saved(c, 1), before, dy, gate_slope, slope);
    if (of_weights) {
      product_to_weight(c, in(c), gate_slope, WeightRole::gate);
      bias_to_weight(c, WeightRole::gate_bias, gate_slope);
    } else {
      product_to_input(c, gate_slope, WeightRole::gate, 0);
    }
  } else {
    operations_->activate_backward(c.stream, shape_.relu ? Activation::relu : Activation::gelu, before, dy,
                                   slope);
  }
  if (!of_weights) return product_to_input(c, slope, WeightRole::up, 0);
  product_to_weight(c, in(c), slope, WeightRole::up);
  bias_to_weight(c, WeightRole::up_bias, slope);
}

void TransformerNetwork::backward_attention(const Call& c) {
  const bool in_ring = ring_ranks(c) > 0;
  const Array q = in(c, 0), kv = keys_at_hand(c), shares = saved(c, 0), dy = above(c);
  const Array slopes = scratch(1, shares.elements),
              dkv = in_ring ? ring(c.in_forward_pass).gradients(c.ring_step) : scratch(2, kv.elements),
              dq = scratch(3, q.elements);
  operations_->attend_backward(c.stream, attention_shape(c, q, kv), dropout(c), q, kv, shares, out(c), dy,
                               slopes, dq, dkv);
  give(c, 0, [&](const Array& to) { arithmetic_.copy(c.stream, dq, to); });
  if (in_ring) return;  // they travel on with the keys and values
  give(c, 1, [&](const Array& to) { arithmetic_.copy(c.stream, dkv, to); });
}

void TransformerNetwork::backward_loss(const Call& c) {
  if (c.kind() == SegmentKind::loss) {
    const Array sums = in(c, 0), dsums = scratch(1, sums.elements), dlabels = scratch(2, sums.elements);
    operations_->token_losses_backward(c.stream, {{}, sums, {}}, loss_scale_, dsums, dlabels);
    give(c, 0, [&](const Array& to) { arithmetic_.copy(c.stream, dsums, to); });
    give(c, 1, [&](const Array& to) { arithmetic_.copy(c.stream, dlabels, to); });
    return;
  }
  const Array logits = in(c, 0), maxima = in(c, 1);
  const auto classes = logits.elements / maxima.elements;
  const Part part = shards_.part(c.kind(), Dim::vocabulary);
  // The labels of the current step.
  const Array labels = labels_[slot_at_work_[static_cast<std::size_t>(c.microbatch)]];
  give(c, 0, [&](const Array& to) {
    operations_->logits_backward(c.stream, logits, {labels, static_cast<std::size_t>(part.number) * classes},
                                 maxima, above(c, 0), above(c, 1), to);
  });
}

}  // namespace rehearse
