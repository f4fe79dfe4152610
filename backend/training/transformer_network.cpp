#include "backend/training/transformer_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "backend/training/trainable_transformer.hpp"
#include "backend/training/workload_parts.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

std::unique_ptr<TransformerArithmetic> operations_of(Arithmetic& arithmetic) {
  std::unique_ptr<TransformerArithmetic> operations = arithmetic.transformer();
  if (!operations)
    throw RunError(fmt::format("{} has no arithmetic of transformers", arithmetic.device_name()));
  return operations;
}

std::vector<Layer> layers_of(const Scenario& scenario, const std::vector<Factor>& factors) {
  PassShape pass = pass_shape(scenario);
  pass.splits = splits_of(factors);
  return model_layers(scenario.model, pass);
}

TokenOrder order_of_tokens(const Scenario& scenario, const DimSizes& sizes) {
  const StrategyChoice& strategy = scenario.strategy;
  if (strategy.context == 1 || strategy.context_kind != ContextKind::ring || !strategy.zigzag) return {};
  const long pieces = 2L * strategy.context;
  return {sizes.sequence / pieces, pieces};
}

// Returns the layers after which there is a transfer between this rank's stage and another one.
std::vector<int> ends_of_stages(const std::vector<LayerRange>& held, std::size_t layers) {
  const auto is_held = [&](int layer) {
    return std::any_of(held.begin(), held.end(),
                       [&](const LayerRange& range) { return range.first <= layer && layer <= range.last; });
  };
  std::vector<int> ends;
  for (int layer = 0; layer + 1 < static_cast<int>(layers); ++layer)
    if (is_held(layer) != is_held(layer + 1)) ends.push_back(layer);
  return ends;
}

}  // namespace

TransformerNetwork::TransformerNetwork(const Scenario& scenario, const std::vector<Factor>& factors,
                                       NetworkPart part, long kept_steps, Arithmetic& arithmetic)
    : arithmetic_(arithmetic),
      operations_(operations_of(arithmetic)),
      shape_(std::get<Transformer>(scenario.model.shape)),
      part_(std::move(part)),
      microbatches_(scenario.microbatches),
      sizes_(dim_sizes(scenario)),
      model_(layers_of(scenario, factors)),
      shards_(factors, part_.coordinates),
      walk_(walk(model_, shards_.factors(), ends_of_stages(part_.held, model_.size()))),
      order_(order_of_tokens(scenario, sizes_)),
      data_(part_.samples ? part_.samples : training_samples(scenario)),
      seed_(scenario.run.seed),
      head_(std::lround(shape_.head_dim > 0 ? shape_.head_dim : shape_.hidden / shape_.heads)),
      value_head_(shape_.value_head_dim > 0 ? std::lround(shape_.value_head_dim) : head_),
      loss_scale_(static_cast<float>(
          1 / (static_cast<double>(own_samples() * sizes_.sequence) * microbatches_ * part_.summed))),
      experts_apart_(places_experts(scenario)),
      table_copy_(tied_apart(scenario)) {
  if (part_.loss_elsewhere) throw RunError("the loss of a transformer is taken where its logits are");
  std::vector<LayerWeights::Layer> layers;
  for (const LayerRange& range : part_.held)
    for (int layer = range.first; layer <= range.last; ++layer) {
      add_weights(scenario, layer);
      std::size_t elements = 0;
      for (int s = walk_.first_segment[static_cast<std::size_t>(layer)];
           s < walk_.first_segment[static_cast<std::size_t>(layer) + 1]; ++s)
        for (const Weight& weight : weights_of_[s]) elements += weight.tensor.local.elements();
      layers.push_back({layer, elements});
    }
  weights_ = LayerWeights(arithmetic, layers, optimizer_of(scenario), scenario.training.precision,
                          scenario.training.gradient_precision);
  std::size_t summed = 0;
  for (const auto& [segment, weights] : weights_of_)
    for (const Weight& weight : weights) {
      const std::vector<float> initial = initial_values(weight.tensor, shards_, scenario.run.seed);
      arithmetic.copy_to_device(
          0, initial.data(),
          weights_.master_weights({weight.layer, weight.layer}).part(weight.tensor.offset, initial.size()));
      if (weight.tensor.summed != 0) summed += initial.size();
    }
  for (const LayerRange& range : part_.held) weights_.cast_weights(0, range);
  summed_ = OwnedArray(arithmetic, summed, Precision::fp32);
  values_ = std::make_unique<ValueStore>(arithmetic, *operations_, model_, walk_, shards_, sizes_, part_.held,
                                         microbatches_, part_.change_streams);
  for (const LayerRange& range : part_.held)
    for (int s = walk_.first_segment[static_cast<std::size_t>(range.first)];
         s < walk_.first_segment[static_cast<std::size_t>(range.last) + 1]; ++s)
      allocate_saved(s);
  std::size_t largest = values_->largest(), ring = 0;
  for (std::size_t s = 0; s < walk_.segments.size(); ++s)
    if (holds(walk_.layer_of[s]) && !walk_.segments[s]->steps.empty())
      ring = std::max(ring, values_->input(0, static_cast<int>(s), 1, 0).elements);
  rings_apart_ = scenario.strategy.overlap_passes;
  for (std::size_t i = 0; ring > 0 && i < (rings_apart_ ? 2 : 1); ++i) rings_[i] = RingKeys(arithmetic, ring);
  for (const auto& [segment, arrays] : saved_)
    for (const std::vector<OwnedArray>& each : arrays) largest = std::max(largest, each.front()->elements);
  constexpr int kScratch = 4;
  for (int i = 0; i < kScratch; ++i) scratch_.emplace_back(arithmetic_, largest, Precision::fp32);
  shares_table_ = holds(0) && holds(TransformerNetwork::layers() - 1) && shape_.tied_embeddings;
  if (shares_table_ && !part_.sum_microbatches)
    tied_ = OwnedArray(arithmetic, weights_of_.at(0).front().tensor.local.elements(), Precision::fp32);
  allocate_batches(kept_steps);
  // Ranks that split the loss know a part of it each. Of ranks that know the same part, the first reports it.
  tells_loss_ = holds(TransformerNetwork::layers() - 1);
  const Layer& last = model_.back();
  for (std::size_t f = 0; f < shards_.factors().size(); ++f) {
    const Use use = input_use(last, last.segments.back(), 0, shards_.factors()[f].table);
    if (use.as.kind != Placement::Kind::sharded && shards_.coordinates()[f] > 0) tells_loss_ = false;
  }
  arithmetic.settle(0);
}

void TransformerNetwork::add_weights(const Scenario& scenario, int layer) {
  const bool copy = table_copy_ && layer + 1 == layers();
  // Adds the tensors in the order of the layer, which is that of its segments.
  for (ParameterTensor& tensor : layer_parameters(scenario, model_, layer, shards_, copy).tensors) {
    const int segment = walk_.first_segment[static_cast<std::size_t>(layer)] + tensor.segment;
    weights_of_[segment].push_back({layer, std::move(tensor)});
  }
}

void TransformerNetwork::allocate_saved(int segment) {
  const auto of = [&](std::size_t elements) {
    std::vector<OwnedArray>& arrays = saved_[segment].emplace_back();
    for (int m = 0; m < microbatches_; ++m) arrays.emplace_back(arithmetic_, elements, Precision::fp32);
  };
  const Segment& what = *walk_.segments[static_cast<std::size_t>(segment)];
  const std::size_t made = what.outputs.empty() ? 0 : values_->output(segment, 0, 0).elements;
  const auto rows = [&](std::size_t elements, long width) {
    return elements / static_cast<std::size_t>(width);
  };
  switch (what.kind) {
    case SegmentKind::norm:
      of(2 * rows(made, std::lround(shape_.hidden)));
      break;
    case SegmentKind::query_norm:
      of(2 * rows(made, head_));
      if (what.outputs.size() > 1) of(2 * rows(values_->output(segment, 1, 0).elements, head_ + value_head_));
      break;
    case SegmentKind::key_norm:
      of(2 * rows(made, head_ + value_head_));
      break;
    case SegmentKind::attention:  // softmax per query and head
      of(rows(made, value_head_) * static_cast<std::size_t>(sizes_.sequence));
      if (!what.steps.empty()) of(2 * rows(made, value_head_));
      break;
    case SegmentKind::dispatch:
      if (sizes_.room_for_all) break;
      of(rows(made, std::lround(shape_.hidden)));
      of(rows(made, std::lround(shape_.hidden)));
      break;
    case SegmentKind::up:
    case SegmentKind::expert_up:
      of(made);
      if (shape_.gated) of(made);
      break;
    default:
      break;
  }
}

void TransformerNetwork::allocate_batches(long kept_steps) {
  kept_.assign(static_cast<std::size_t>(kept_steps), -1);
  slot_at_work_.assign(static_cast<std::size_t>(microbatches_), 0);
  const std::size_t batches = kept_.size() * static_cast<std::size_t>(microbatches_);
  const auto of = [&](SegmentKind kind) {
    return EqualArrays(arithmetic_, batches, static_cast<std::size_t>(tokens_here(kind)), Precision::fp32);
  };
  if (has_dropout(shape_))
    samples_ = EqualArrays(arithmetic_, batches, static_cast<std::size_t>(own_samples()), Precision::fp32);
  if (holds(0)) tokens_ = of(SegmentKind::embedding);
  if (!holds(layers() - 1)) return;
  labels_ = of(SegmentKind::sums);
  losses_ = of(SegmentKind::loss);
}

std::size_t TransformerNetwork::slot(long step, int microbatch) const {
  const std::size_t number = static_cast<std::size_t>(step) % kept_.size();
  if (kept_[number] != step) throw std::out_of_range(fmt::format("step {} has no batch", step));
  return number * static_cast<std::size_t>(microbatches_) + static_cast<std::size_t>(microbatch);
}

MatrixShape TransformerNetwork::matrix(int layer) const {
  throw RunError(fmt::format("layer {} of a transformer has several matrices", layer));
}

void TransformerNetwork::set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) {
  const auto size = static_cast<std::size_t>(own_samples());
  if (samples.size() != size * static_cast<std::size_t>(microbatches_))
    throw std::invalid_argument(fmt::format("{} samples; allowed: {}", samples.size(),
                                            size * static_cast<std::size_t>(microbatches_)));
  kept_[static_cast<std::size_t>(step) % kept_.size()] = step;
  std::vector<float> rows(tokens_.empty() && labels_.empty() ? 0 : size * data_->numbers());
  for (int m = 0; m < microbatches_; ++m) {
    const auto first = samples.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(m) * size);
    const std::vector<std::uint64_t> its(first, first + static_cast<std::ptrdiff_t>(size));
    for (std::size_t b = 0; b < size && !rows.empty(); ++b)
      data_->read(its[b], 0, data_->numbers(), &rows[b * data_->numbers()]);
    take_batch(stream, step, m, its, rows);
  }
}

void TransformerNetwork::take_batch(int stream, long step, int microbatch,
                                    const std::vector<std::uint64_t>& samples,
                                    const std::vector<float>& rows) {
  constexpr std::uint64_t kNumbers = 1 << 24;  // integers that fp32 can represent
  kept_[static_cast<std::size_t>(step) % kept_.size()] = step;
  // `shift` is 1 for labels, which are the following tokens, else 0.
  const auto load = [&](const EqualArrays& to, SegmentKind kind, long shift) {
    if (to.empty()) return;
    const Part sequence = shards_.part(kind, Dim::sequence);
    const long first = sequence.first(sizes_.sequence);
    std::vector<float> numbers;
    for (std::size_t b = 0; b < samples.size(); ++b)
      for (long token = first; token < first + sequence.size(sizes_.sequence); ++token)
        numbers.push_back(
            rows[b * data_->numbers() + static_cast<std::size_t>(order_.position(token) + shift)]);
    arithmetic_.copy_to_device(stream, numbers.data(), to[slot(step, microbatch)]);
  };
  load(tokens_, SegmentKind::embedding, 0);
  load(labels_, SegmentKind::sums, 1);
  if (samples_.empty()) return;
  std::vector<float> numbers;
  for (const std::uint64_t sample : samples) numbers.push_back(static_cast<float>(sample % kNumbers));
  arithmetic_.copy_to_device(stream, numbers.data(), samples_[slot(step, microbatch)]);
}

Array TransformerNetwork::input(long step, int microbatch) {
  kept_.at(static_cast<std::size_t>(step) % kept_.size()) = step;
  return tokens_[slot(step, microbatch)];
}

double TransformerNetwork::take_loss(int stream, long step) {
  if (losses_.empty()) return 0;
  double sum = 0;
  std::vector<float> losses(static_cast<std::size_t>(tokens_here(SegmentKind::loss)));
  for (int m = 0; m < microbatches_; ++m) {
    arithmetic_.copy_to_host(stream, losses_[slot(step, m)], losses.data());
    sum = std::accumulate(losses.begin(), losses.end(), sum);
  }
  return sum / static_cast<double>(sizes_.sequence);
}

TransformerNetwork::Call TransformerNetwork::call(int stream, long step, int microbatch, int segment,
                                                  int ring_step) const {
  const auto s = static_cast<std::size_t>(segment);
  return {stream, step, microbatch, segment, walk_.layer_of.at(s), ring_step, walk_.segments.at(s)};
}

void TransformerNetwork::forward_segments(int stream, long step, int microbatch, SegmentRange segments) {
  if (!samples_.empty() || !labels_.empty())
    slot_at_work_[static_cast<std::size_t>(microbatch)] = slot(step, microbatch);
  for (int s = segments.first; s < segments.end; ++s) {
    values_->begin_forward(s, microbatch);
    Call c = call(stream, step, microbatch, s, segments.ring_step);
    c.in_forward_pass = true;
    forward(c);
  }
}

void TransformerNetwork::recompute_segments(int stream, long step, int microbatch, SegmentRange segments) {
  for (int s = segments.first; s < segments.end; ++s)
    if (!walk_.segments.at(static_cast<std::size_t>(s))->cost.recompute.empty())
      forward(call(stream, step, microbatch, s, segments.ring_step));
}

void TransformerNetwork::backward_segments(int stream, long step, int microbatch, SegmentRange segments) {
  for (int s = segments.end - 1; s >= segments.first; --s) {
    const Call c = call(stream, step, microbatch, s, segments.ring_step);
    backward_input(c);
    backward_weight(c);
  }
}

void TransformerNetwork::backward_input_segments(int stream, int microbatch, SegmentRange segments) {
  for (int s = segments.end - 1; s >= segments.first; --s)
    backward_input(call(stream, 0, microbatch, s, segments.ring_step));
}

void TransformerNetwork::backward_weight_segments(int stream, long step, int microbatch,
                                                  SegmentRange segments) {
  for (int s = segments.end - 1; s >= segments.first; --s) backward_weight(call(stream, step, microbatch, s));
}

// ----- weights

TransformerNetwork::Weight* TransformerNetwork::find_weight(int segment, WeightRole role) {
  const auto found = weights_of_.find(segment);
  if (found == weights_of_.end()) return nullptr;
  for (Weight& weight : found->second)
    if (weight.tensor.role == role) return &weight;
  return nullptr;
}

// Returns an empty array if the segment has no such weight. The logits' product reads the first layer's
// table, unless the last layer has a separate one.
Array TransformerNetwork::weight(const Call& c, WeightRole role) {
  const Weight* found = find_weight(c.segment, role);
  if (!found && role == WeightRole::table) found = find_weight(0, role);
  if (!found) return {};
  return weights_.weights({found->layer, found->layer})
      .part(found->tensor.offset, found->tensor.local.elements());
}

TransformerNetwork::GradientOf TransformerNetwork::gradient(const Call& c, WeightRole role) {
  Weight* found = find_weight(c.segment, role);
  if (!found && role == WeightRole::table) found = find_weight(0, role);
  if (!found) return {};
  const long now = part_.sum_microbatches ? c.step : c.step * microbatches_ + c.microbatch;
  const bool accumulate = found->written == now;
  found->written = now;
  return {weights_.gradients({found->layer, found->layer})
              .part(found->tensor.offset, found->tensor.local.elements()),
          accumulate};
}

std::vector<Array> TransformerNetwork::replicated_weights(LayerRange layers) const {
  std::vector<Array> arrays;
  for (const auto& [segment, weights] : weights_of_)
    for (const Weight& weight : weights)
      if (weight.layer >= layers.first && weight.layer <= layers.last && !weight.tensor.sharded())
        arrays.push_back(weights_.weights({weight.layer, weight.layer})
                             .part(weight.tensor.offset, weight.tensor.local.elements()));
  return arrays;
}

std::vector<WeightRun> TransformerNetwork::runs(LayerRange layers, int part) const {
  std::vector<WeightRun> runs;
  std::size_t at = 0;
  for (int layer = layers.first; layer <= layers.last; ++layer)
    for (int s = walk_.first_segment[static_cast<std::size_t>(layer)];
         s < walk_.first_segment[static_cast<std::size_t>(layer) + 1]; ++s) {
      const SegmentKind kind = walk_.segments[static_cast<std::size_t>(s)]->kind;
      const bool apart =
          experts_apart_ && (kind == SegmentKind::expert_up || kind == SegmentKind::expert_down);
      const auto found = weights_of_.find(s);
      if (found == weights_of_.end()) continue;
      for (const Weight& weight : found->second) {
        const std::size_t count = weight.tensor.local.elements();
        if (apart == (part == 1)) {
          if (!runs.empty() && runs.back().first + runs.back().count == at)
            runs.back().count += count;
          else
            runs.push_back({at, count});
        }
        at += count;
      }
    }
  return runs;
}

Array TransformerNetwork::tied_gradient(int layer) const {
  if (!table_copy_) return {};
  for (const auto& [segment, weights] : weights_of_)
    for (const Weight& weight : weights)
      if (weight.layer == layer && weight.tensor.role == WeightRole::table)
        return weights_.gradients({layer, layer}).part(weight.tensor.offset, weight.tensor.local.elements());
  return {};
}

void TransformerNetwork::for_each_summed(
    const SharedSum& sum, const std::function<void(const Array& gradient, const Array& packed)>& of) {
  std::size_t at = 0;
  for (const auto& [segment, weights] : weights_of_)
    for (const Weight& weight : weights) {
      if (weight.layer < sum.layers.first || weight.layer > sum.layers.last) continue;
      if (weight.tensor.summed != sum.factors) continue;
      const std::size_t elements = weight.tensor.local.elements();
      of(weights_.gradients({weight.layer, weight.layer}).part(weight.tensor.offset, elements),
         summed_->part(at, elements));
      at += elements;
    }
}

// Gradients that return to their rank are received as the gradient of attention's keys and values.
Array TransformerNetwork::ring_message(int stream, int segment, int microbatch, const RingMessage& message,
                                       bool send) {
  if (!send && !message.keys() && message.step == message.ranks)
    return values_->input_gradient(stream, segment, 1, microbatch).array;
  RingKeys& keys = ring(message.of_forward_pass);
  return send ? keys.sent(stream, message, values_->input(stream, segment, 1, microbatch))
              : keys.received(message);
}

Array TransformerNetwork::begin_sum(int stream, const SharedSum& sum) {
  std::size_t elements = 0;
  for_each_summed(sum, [&](const Array& gradient, const Array& packed) {
    arithmetic_.copy(stream, gradient, packed);
    elements += packed.elements;
  });
  return summed_->part(0, elements);
}

void TransformerNetwork::end_sum(int stream, const SharedSum& sum) {
  for_each_summed(
      sum, [&](const Array& gradient, const Array& packed) { arithmetic_.copy(stream, packed, gradient); });
}

// ----- operands

long product_rows(const Array& x, const Array& y, const Array& w) {
  return std::lround(std::sqrt(static_cast<double>(x.elements) * static_cast<double>(y.elements) /
                               static_cast<double>(w.elements)));
}

void TransformerNetwork::give(const Call& c, int input, const std::function<void(const Array&)>& write) {
  const GradientTarget target = values_->input_gradient(c.stream, c.segment, input, c.microbatch);
  if (!target.wanted) return;
  if (!target.accumulate) return write(target.array);
  const Array more = scratch(0, target.array.elements);
  write(more);
  arithmetic_.add(c.stream, more, target.array);
}

Array TransformerNetwork::saved(const Call& c, std::size_t number) const {
  return saved_.at(c.segment).at(number).at(static_cast<std::size_t>(c.microbatch));
}

// Ranks that exchange token rows have different samples.
long TransformerNetwork::own_samples() const {
  return shards_.part(SegmentKind::norm, Dim::batch).size(sizes_.batch);
}

long TransformerNetwork::tokens_here(SegmentKind kind) const {
  return shards_.part(kind, Dim::batch).size(sizes_.batch) *
         shards_.part(kind, Dim::sequence).size(sizes_.sequence);
}

TokenRows TransformerNetwork::token_rows(const Call& c) const {
  const Part sequence = shards_.part(c.kind(), Dim::sequence);
  return {shards_.part(c.kind(), Dim::batch).size(sizes_.batch), sequence.size(sizes_.sequence),
          sequence.first(sizes_.sequence), order_};
}

}  // namespace rehearse
