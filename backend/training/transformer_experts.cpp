// Mixtures of experts. Token rows are sorted by expert, and each expert multiplies its own rows. No token is
// dropped: an expert's buffer holds the rows that the router sent it or, with DimSizes::room_for_all, a row
// for every token, the unused ones 0.
#include <cmath>

#include "backend/training/transformer_network.hpp"

namespace rehearse {

// Sorts the token rows by expert from the router's gates, on the host, because the number of an expert's rows
// is the size of its products.
void TransformerNetwork::route(const Call& c) {
  const Array gates = in(c, 1);
  const auto experts = static_cast<std::size_t>(sizes_.experts), tokens = gates.elements / experts;
  std::vector<float> chosen(gates.elements), rows, places;
  arithmetic_.copy_to_host(c.stream, gates, chosen.data());
  std::vector<long>& begin = first_rows_[{c.layer, c.microbatch}];
  begin.clear();
  for (std::size_t e = 0; e < experts; ++e) {
    begin.push_back(static_cast<long>(rows.size()));
    for (std::size_t t = 0; t < tokens; ++t) {
      if (chosen[t * experts + e] == 0) continue;
      rows.push_back(static_cast<float>(t));
      places.push_back(static_cast<float>(t * experts + e));
    }
  }
  begin.push_back(static_cast<long>(rows.size()));
  arithmetic_.copy_to_device(c.stream, rows.data(), saved(c, 0));
  arithmetic_.copy_to_device(c.stream, places.data(), saved(c, 1));
}

Array TransformerNetwork::routed(const Call& c, std::size_t number) const {
  int dispatch = c.segment;
  while (walk_.segments[static_cast<std::size_t>(dispatch)]->kind != SegmentKind::dispatch) --dispatch;
  return saved_.at(dispatch).at(number).at(static_cast<std::size_t>(c.microbatch));
}

ExpertRows TransformerNetwork::expert_rows(const Call& c) const {
  return {tokens_here(c.kind()), sizes_.experts, std::lround(shape_.hidden)};
}

long TransformerNetwork::routed_rows(const Call& c) const {
  return sizes_.room_for_all
             ? shards_.part(c.kind(), Dim::experts).size(sizes_.experts) * tokens_here(c.kind())
             : static_cast<long>(routed(c, 0).elements);
}

// Calls `each` for every expert on this rank, with its weight matrix and its `count` rows from row `first`
// on.
void TransformerNetwork::for_each_expert(
    const Call& c, const Array& matrices,
    const std::function<void(long first, long count, const Array& matrix)>& each) const {
  const auto experts = static_cast<std::size_t>(shards_.part(c.kind(), Dim::experts).size(sizes_.experts));
  const std::size_t elements = matrices.elements / experts;
  const auto matrix = [&](std::size_t expert) { return matrices.part(expert * elements, elements); };
  if (sizes_.room_for_all) {
    const long tokens = tokens_here(c.kind());
    for (std::size_t e = 0; e < experts; ++e) each(static_cast<long>(e) * tokens, tokens, matrix(e));
    return;
  }
  const std::vector<long>& begin = first_rows_.at({c.layer, c.microbatch});
  for (std::size_t e = 0; e < experts; ++e) each(begin[e], begin[e + 1] - begin[e], matrix(e));
}

namespace {

Array rows_of(const Array& all, long width, long first, long count) {
  return all.part(static_cast<std::size_t>(first * width), static_cast<std::size_t>(count * width));
}

}  // namespace

void TransformerNetwork::expert_product(const Call& c, const Array& x, WeightRole role, const Array& y) {
  const long rows = routed_rows(c);
  const long inputs = static_cast<long>(x.elements) / rows, outputs = static_cast<long>(y.elements) / rows;
  for_each_expert(c, weight(c, role), [&](long first, long count, const Array& matrix) {
    if (count > 0)
      arithmetic_.gemm(c.stream, {count, outputs, inputs}, false, false, 1, rows_of(x, inputs, first, count),
                       matrix, 0, rows_of(y, outputs, first, count));
  });
}

void TransformerNetwork::expert_to_input(const Call& c, const Array& dy, WeightRole role) {
  const GradientTarget target = values_->input_gradient(c.stream, c.segment, 0, c.microbatch);
  if (!target.wanted) return;
  const long rows = routed_rows(c);
  const long inputs = static_cast<long>(target.array.elements) / rows,
             outputs = static_cast<long>(dy.elements) / rows;
  for_each_expert(c, weight(c, role), [&](long first, long count, const Array& matrix) {
    if (count > 0)
      arithmetic_.gemm(c.stream, {count, inputs, outputs}, false, true, 1, rows_of(dy, outputs, first, count),
                       matrix, target.accumulate ? 1.0F : 0.0F, rows_of(target.array, inputs, first, count));
  });
}

void TransformerNetwork::expert_to_weight(const Call& c, const Array& dy, WeightRole role) {
  const Array x = in(c);
  const long rows = routed_rows(c);
  const long inputs = static_cast<long>(x.elements) / rows, outputs = static_cast<long>(dy.elements) / rows;
  const auto [dw, accumulate] = gradient(c, role);
  for_each_expert(c, dw, [&, beta = accumulate ? 1.0F : 0.0F](long first, long count, const Array& matrix) {
    if (count > 0)
      arithmetic_.gemm(c.stream, {inputs, outputs, count}, true, false, 1, rows_of(x, inputs, first, count),
                       rows_of(dy, outputs, first, count), beta, matrix);
    else if (beta == 0)
      arithmetic_.scale(c.stream, 0, matrix);
  });
}

void TransformerNetwork::forward_experts(const Call& c) {
  switch (c.kind()) {
    case SegmentKind::router: {
      const Array gates = out(c), logits = scratch(1, gates.elements);
      product(c, in(c), WeightRole::router, logits);
      add_bias(c, WeightRole::router_bias, logits);
      return operations_->choose(c.stream, router_shape(gates), logits, gates);
    }
    case SegmentKind::dispatch:
      if (sizes_.room_for_all)
        return operations_->spread_rows(c.stream, expert_rows(c), false, in(c, 1), in(c), out(c));
      route(c);
      return operations_->look_up(c.stream, saved(c, 0), 0, std::lround(shape_.hidden), in(c), out(c));
    case SegmentKind::expert_up: {
      const Array x = in(c), before = saved(c, 0), y = out(c);
      expert_product(c, x, WeightRole::up, before);
      if (!shape_.gated)
        return operations_->activate(c.stream, shape_.relu ? Activation::relu : Activation::gelu, before, y);
      const Array gate = saved(c, 1);
      expert_product(c, x, WeightRole::gate, gate);
      return operations_->gate(c.stream, gate, before, y);
    }
    case SegmentKind::expert_down:
      return expert_product(c, in(c), WeightRole::down, out(c));
    default: {  // combine
      if (sizes_.room_for_all)
        return operations_->gather_rows(c.stream, expert_rows(c), true, in(c, 1), in(c, 0), out(c));
      const Array z = in(c, 0), gates = in(c, 1), rows = routed(c, 0);
      const Array factors = scratch(1, rows.elements), scaled = scratch(2, z.elements);
      operations_->look_up(c.stream, routed(c, 1), 0, 1, gates, factors);
      operations_->scale_rows(c.stream, factors, z, scaled);
      return operations_->look_up_backward(c.stream, rows, 0, std::lround(shape_.hidden), scaled, out(c),
                                           false);
    }
  }
}

RouterShape TransformerNetwork::router_shape(const Array& gates) const {
  return {static_cast<long>(gates.elements) / sizes_.experts, sizes_.experts,
          std::lround(shape_.experts_per_token)};
}

void TransformerNetwork::backward_experts(const Call& c, bool of_weights) {
  switch (c.kind()) {
    case SegmentKind::router: {
      const Array gates = out(c), slope = scratch(1, gates.elements);
      operations_->choose_backward(c.stream, router_shape(gates), gates, above(c), slope);
      if (!of_weights) return product_to_input(c, slope, WeightRole::router, 0);
      product_to_weight(c, in(c), slope, WeightRole::router);
      return bias_to_weight(c, WeightRole::router_bias, slope);
    }
    case SegmentKind::dispatch:
      return give(c, 0, [&](const Array& to) {
        if (sizes_.room_for_all)
          return operations_->gather_rows(c.stream, expert_rows(c), false, in(c, 1), above(c), to);
        operations_->look_up_backward(c.stream, saved(c, 0), 0, std::lround(shape_.hidden), above(c), to,
                                      false);
      });
    case SegmentKind::expert_up: {
      const Array dy = above(c), before = saved(c, 0), slope = scratch(1, dy.elements);
      if (shape_.gated) {
        const Array gate_slope = scratch(2, dy.elements);
        operations_->gate_backward(c.stream, saved(c, 1), before, dy, gate_slope, slope);
        of_weights ? expert_to_weight(c, gate_slope, WeightRole::gate)
                   : expert_to_input(c, gate_slope, WeightRole::gate);
      } else {
        operations_->activate_backward(c.stream, shape_.relu ? Activation::relu : Activation::gelu, before,
                                       dy, slope);
      }
      return of_weights ? expert_to_weight(c, slope, WeightRole::up)
                        : expert_to_input(c, slope, WeightRole::up);
    }
    case SegmentKind::expert_down:
      return of_weights ? expert_to_weight(c, above(c), WeightRole::down)
                        : expert_to_input(c, above(c), WeightRole::down);
    default:
      return backward_combine(c);
  }
}

void TransformerNetwork::backward_combine(const Call& c) {
  if (sizes_.room_for_all) {
    give(c, 1, [&](const Array& to) {
      operations_->gate_slopes(c.stream, expert_rows(c), in(c, 1), in(c, 0), above(c), to);
    });
    return give(c, 0, [&](const Array& to) {
      operations_->spread_rows(c.stream, expert_rows(c), true, in(c, 1), above(c), to);
    });
  }
  const Array z = in(c, 0), gates = in(c, 1), rows = routed(c, 0), dy = above(c);
  const Array factors = scratch(1, rows.elements), slopes = scratch(2, z.elements);
  operations_->look_up(c.stream, rows, 0, std::lround(shape_.hidden), dy, slopes);
  operations_->row_products(c.stream, z, slopes, factors);
  give(c, 1, [&](const Array& to) {
    operations_->look_up_backward(c.stream, routed(c, 1), 0, 1, factors, to, false);
  });
  operations_->look_up(c.stream, routed(c, 1), 0, 1, gates, factors);
  give(c, 0, [&](const Array& to) { operations_->scale_rows(c.stream, factors, slopes, to); });
}

}  // namespace rehearse
