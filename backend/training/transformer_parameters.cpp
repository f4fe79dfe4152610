#include "backend/training/transformer_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/training/sample_data.hpp"
#include "models/text/error.hpp"
#include "simulator/strategies/orders/order.hpp"

namespace rehearse {
namespace {

constexpr float kDeviation = 0.02F;

class Writer {
public:
  Writer(const Scenario& scenario, const std::vector<Layer>& model, int layer)
      : t_(std::get<Transformer>(scenario.model.shape)),
        sizes_(dim_sizes(scenario)),
        layer_(model[static_cast<std::size_t>(layer)]) {}

  std::vector<ParameterTensor> write(bool table_copy) {
    for (std::size_t s = 0; s < layer_.segments.size(); ++s) {
      segment_ = static_cast<int>(s);
      write(layer_.segments[s], table_copy);
    }
    return std::move(tensors_);
  }

private:
  using Dims_ = std::vector<Dim>;
  void add(WeightRole role, const Dims_& dims, const std::vector<long>& sizes, float mean, float deviation) {
    ParameterTensor tensor;
    tensor.role = role;
    tensor.whole = {dims, sizes};
    tensor.mean = mean;
    tensor.deviation = deviation;
    tensor.segment = segment_;
    tensors_.push_back(std::move(tensor));
  }
  void weight(WeightRole role, const Dims_& dims, const std::vector<long>& sizes) {
    add(role, dims, sizes, 0, kDeviation);
  }
  // A weight whose results are added to the residual.
  void last_weight(WeightRole role, const Dims_& dims, const std::vector<long>& sizes) {
    add(role, dims, sizes, 0, kDeviation / std::sqrt(2 * static_cast<float>(t_.layers)));
  }
  void bias(WeightRole role, const Dims_& dims, const std::vector<long>& sizes) {
    add(role, dims, sizes, 0, 0);
  }
  void gain(WeightRole role, const Dims_& dims, const std::vector<long>& sizes) {
    add(role, dims, sizes, 1, 0);
  }

  long width(const Segment& segment) const {
    const Value& value = layer_.values[static_cast<std::size_t>(segment.outputs.front())];
    const TensorLayout layout = whole_layout(value, sizes_);
    return layout.sizes.back();
  }

  void write_queries(long h, long g, long q, long d) {
    using enum Dim;
    weight(WeightRole::query, {hidden, kv_heads, queries, head}, {h, g, q, d});
    if (t_.qkv_biases) bias(WeightRole::query_bias, {kv_heads, queries, head}, {g, q, d});
  }
  void write_keys(long h, long g, long pair) {
    using enum Dim;
    weight(WeightRole::key_value, {hidden, kv_heads, head}, {h, g, pair});
    if (t_.qkv_biases) bias(WeightRole::key_value_bias, {kv_heads, head}, {g, pair});
  }

  void write(const Segment& segment, bool table_copy) {
    using enum Dim;
    const long h = std::lround(t_.hidden), v = std::lround(t_.vocabulary);
    const long g = sizes_.kv_heads, q = sizes_.queries, e = sizes_.experts;
    const long d = std::lround(t_.head_dim > 0 ? t_.head_dim : t_.hidden / t_.heads);
    const long dv = t_.value_head_dim > 0 ? std::lround(t_.value_head_dim) : d;
    switch (segment.kind) {
      case SegmentKind::embedding:
        weight(WeightRole::table, {vocabulary, hidden}, {v, h});
        break;
      case SegmentKind::logits:
        if (!t_.tied_embeddings || table_copy) weight(WeightRole::table, {vocabulary, hidden}, {v, h});
        break;
      case SegmentKind::position:
        weight(WeightRole::positions, {keys, hidden}, {std::lround(t_.position_rows()), h});
        break;
      case SegmentKind::norm:
        gain(WeightRole::gain, {hidden}, {h});
        if (t_.norm_biases.value_or(t_.biases)) bias(WeightRole::offset, {hidden}, {h});
        break;
      case SegmentKind::query:
        write_queries(h, g, q, d);
        if (segment.outputs.size() > 1) write_keys(h, g, d + dv);
        break;
      case SegmentKind::key_value:
        write_keys(h, g, d + dv);
        break;
      case SegmentKind::query_norm:
        gain(WeightRole::gain, {head}, {d});
        if (segment.outputs.size() > 1) gain(WeightRole::key_gain, {head}, {d});
        break;
      case SegmentKind::key_norm:
        gain(WeightRole::key_gain, {head}, {d});
        break;
      case SegmentKind::projection:
        last_weight(WeightRole::projection, {kv_heads, queries, head, hidden}, {g, q, dv, h});
        break;
      case SegmentKind::residual:
        if (segment.cost.parameters > 0) bias(WeightRole::bias, {hidden}, {h});
        break;
      case SegmentKind::up: {
        const long f = width(segment);
        if (t_.gated) weight(WeightRole::gate, {hidden, inner}, {h, f});
        weight(WeightRole::up, {hidden, inner}, {h, f});
        if (t_.gated && t_.biases) bias(WeightRole::gate_bias, {inner}, {f});
        if (t_.biases) bias(WeightRole::up_bias, {inner}, {f});
        break;
      }
      case SegmentKind::down: {
        const Value& value = layer_.values[static_cast<std::size_t>(segment.inputs.front())];
        last_weight(WeightRole::down, {inner, hidden}, {whole_layout(value, sizes_).sizes.back(), h});
        break;
      }
      case SegmentKind::router:
        weight(WeightRole::router, {hidden, experts}, {h, e});
        if (t_.router_bias) bias(WeightRole::router_bias, {experts}, {e});
        break;
      case SegmentKind::expert_up: {
        const long f = width(segment);
        if (t_.gated) weight(WeightRole::gate, {experts, hidden, inner}, {e, h, f});
        weight(WeightRole::up, {experts, hidden, inner}, {e, h, f});
        break;
      }
      case SegmentKind::expert_down: {
        const Value& value = layer_.values[static_cast<std::size_t>(segment.inputs.front())];
        last_weight(WeightRole::down, {experts, inner, hidden},
                    {e, whole_layout(value, sizes_).sizes.back(), h});
        break;
      }
      default:
        break;
    }
  }

  const Transformer& t_;
  const DimSizes sizes_;
  const Layer& layer_;
  int segment_ = 0;
  std::vector<ParameterTensor> tensors_;
};

}  // namespace

DimSizes dim_sizes(const Scenario& scenario) {
  const auto& t = std::get<Transformer>(scenario.model.shape);
  const double kv = t.kv_heads > 0 ? t.kv_heads : t.heads;
  DimSizes sizes;
  // Counts the samples of all ranks that exchange token rows.
  sizes.batch = std::lround(pass_shape(scenario).micro_batch);
  sizes.sequence = std::lround(tokens_per_sample(scenario.model, scenario.training.sequence_length));
  sizes.kv_heads = std::lround(kv);
  sizes.queries = std::lround(t.heads / kv);
  sizes.experts = std::max(1L, std::lround(t.experts));
  // Counts rows per expert; those of all experts are stored one after the other.
  sizes.routed =
      sizes.batch * sizes.sequence * std::max(1L, std::lround(t.experts_per_token)) / sizes.experts;
  sizes.room_for_all = t.experts > 0 && scenario.strategy.capacity_factor > 0;
  return sizes;
}

bool tied_apart(const Scenario& scenario) {
  const StrategyChoice& strategy = scenario.strategy;
  const PartPlacement placement = order_of(strategy.schedule).placement;
  return std::get<Transformer>(scenario.model.shape).tied_embeddings &&
         stage_of_part(placement, strategy.pipeline, strategy.pipeline * strategy.virtual_stages - 1) != 0;
}

LayerParameters layer_parameters(const Scenario& scenario, const std::vector<Layer>& model, int number,
                                 const Shards& shards, bool table_copy) {
  const Layer& layer = model[static_cast<std::size_t>(number)];
  LayerParameters result;
  result.tensors = Writer(scenario, model, number).write(table_copy);
  std::vector<int> seen(64, 0);
  for (ParameterTensor& tensor : result.tensors) {
    const Segment& segment = layer.segments[static_cast<std::size_t>(tensor.segment)];
    for (std::size_t f = 0; f < shards.factors().size(); ++f) {
      const Use use = parameter_use(layer, segment, shards.factors()[f].table);
      const bool cut = use.as.kind == Placement::Kind::sharded;
      const bool here = cut && tensor.whole.find(use.as.dim) >= 0;
      tensor.placements.push_back(here ? use.as : Placement{});
      const bool in_part = (cut && !here) || use.gradient.kind == Placement::Kind::partial;
      if (in_part && !shards.factors()[f].sums_gradients) tensor.summed |= 1U << f;
    }
    tensor.local = shards.local(tensor.whole, tensor.placements);
    tensor.offset = result.elements;
    result.elements += tensor.local.elements();
    const auto role = static_cast<std::size_t>(tensor.role);
    // The copy of a tied table starts with the first layer's values.
    const bool copy = table_copy && tensor.role == WeightRole::table;
    tensor.number = ((copy ? 0 : static_cast<std::uint64_t>(number)) * seen.size() + role) * 16 +
                    static_cast<std::uint64_t>(seen[role]++);
  }
  double counted = 0;
  for (const Segment& segment : layer.segments) counted += segment.cost.parameters;
  for (const ParameterTensor& tensor : result.tensors)
    if (table_copy && tensor.role == WeightRole::table)
      counted += static_cast<double>(tensor.local.elements());
  if (std::abs(counted - static_cast<double>(result.elements)) > 0.5)
    throw RunError(
        fmt::format("layer {} has {} parameters, of which {} are trained", number, counted, result.elements));
  return result;
}

std::vector<float> initial_values(const ParameterTensor& tensor, const Shards& shards, std::uint64_t seed) {
  std::vector<float> values(tensor.whole.elements(), tensor.mean);
  if (tensor.deviation > 0) {
    standard_normal(seed, RandomUse::weights, tensor.number, values.data(), static_cast<long>(values.size()));
    for (float& value : values) value = tensor.mean + tensor.deviation * value;
  }
  return part_of(tensor, shards, std::move(values));
}

std::vector<float> part_of(const ParameterTensor& tensor, const Shards& shards, std::vector<float> values) {
  TensorLayout layout = tensor.whole;
  for (std::size_t f = 0; f < tensor.placements.size(); ++f) {
    if (tensor.placements[f].kind != Placement::Kind::sharded) continue;
    const int parts = shards.factors()[f].size;
    const DimCut c = cut_along(layout, tensor.placements[f].dim, parts);
    std::vector<float> part;
    part.reserve(values.size() / static_cast<std::size_t>(parts));
    for (long row = 0; row < c.rows; ++row) {
      const auto from = values.begin() + row * c.stride + shards.coordinates()[f] * c.width;
      part.insert(part.end(), from, from + c.width);
    }
    values = std::move(part);
    layout.sizes[static_cast<std::size_t>(layout.find(tensor.placements[f].dim))] /= parts;
  }
  return values;
}

}  // namespace rehearse
