// Computes forward and backward passes of a transformer's layers, or shards of them, that one rank holds,
// segment by segment (models/segment.hpp). The numbers that ranks exchange between segments follow from the
// tables of the axes alone (value_store.hpp).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/training/equal_arrays.hpp"
#include "backend/training/layer_weights.hpp"
#include "backend/training/sample_sources.hpp"
#include "backend/training/trained_network.hpp"
#include "backend/training/transformer_parameters.hpp"
#include "backend/training/value_store.hpp"

namespace rehearse {

class TransformerNetwork : public TrainedNetwork {
public:
  // The scenario's model must be a transformer for which why_no_transformer() is empty. `factors` are those
  // of the axes that shard layers, that is, factors_of(scenario). Throws RunError if these or the device
  // require something that is not implemented here.
  TransformerNetwork(const Scenario& scenario, const std::vector<Factor>& factors, NetworkPart part,
                     long kept_steps, Arithmetic& arithmetic);

  int layers() const override { return static_cast<int>(model_.size()); }
  bool holds(int layer) const override { return weights_.holds(layer); }
  MatrixShape matrix(int layer) const override;

  void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) override;
  void take_batch(int stream, long step, int microbatch, const std::vector<std::uint64_t>& samples,
                  const std::vector<float>& rows) override;
  Array input(long step, int microbatch) override;

  void forward_segments(int stream, long step, int microbatch, SegmentRange segments) override;
  void recompute_segments(int stream, long step, int microbatch, SegmentRange segments) override;
  void backward_segments(int stream, long step, int microbatch, SegmentRange segments) override;
  void backward_input_segments(int stream, int microbatch, SegmentRange segments) override;
  void backward_weight_segments(int stream, long step, int microbatch, SegmentRange segments) override;

  Array begin_transfer(int stream, const ValueTransfer& transfer) override {
    return values_->begin_transfer(stream, transfer);
  }
  void end_transfer(int stream, const ValueTransfer& transfer) override {
    values_->end_transfer(stream, transfer);
  }
  Array ring_message(int stream, int segment, int microbatch, const RingMessage& message, bool send) override;
  Array begin_sum(int stream, const SharedSum& sum) override;
  void end_sum(int stream, const SharedSum& sum) override;
  Array tied_gradient(int layer) const override;

  void update(int stream, LayerRange layers) override { weights_.update(stream, layers); }
  double take_loss(int stream, long step) override;
  bool tells_loss() const override { return tells_loss_; }

  Array activation(int microbatch, int layer) const override {
    return values_->activation(microbatch, layer);
  }
  void begin_send(int stream, int microbatch, int layer, bool of_gradient) override {
    values_->begin_send(stream, microbatch, layer, of_gradient);
  }
  Array activation_gradient(int microbatch, int layer) const override {
    return values_->activation_gradient(microbatch, layer);
  }

  std::vector<HeldState> state() const override { return weights_.state(); }
  void restored(int stream, long steps) override { weights_.restored(stream, steps); }
  Array weights(LayerRange layers) const override { return weights_.weights(layers); }
  Array gradients(LayerRange layers) const override { return weights_.gradients(layers); }
  Array all_weights() const override { return weights_.all_weights(); }
  std::vector<WeightRun> runs(LayerRange layers, int part) const override;
  std::vector<Array> replicated_weights(LayerRange layers) const override;

private:
  // The segment that is being computed.
  struct Call {
    int stream = 0;
    long step = 0;
    int microbatch = 0, segment = 0;  // segment: index in the model
    int layer = 0, ring_step = 0;
    const Segment* what = nullptr;
    bool in_forward_pass = false;  // else in a recomputation or a backward pass
    SegmentKind kind() const { return what->kind; }
  };
  struct Weight {  // of a segment
    int layer = 0;
    ParameterTensor tensor;
    long written = -1;  // the step (or micro-batch) to which its gradient belongs
  };
  Call call(int stream, long step, int microbatch, int segment, int ring_step = 0) const;
  void add_weights(const Scenario& scenario, int layer);
  void allocate_saved(int segment);
  void allocate_batches(long kept_steps);
  std::size_t slot(long step, int microbatch) const;
  void forward(const Call& c);
  void forward_heads(const Call& c);
  void forward_norms(const Call& c);
  void forward_up(const Call& c);
  void forward_experts(const Call& c);
  void route(const Call& c);
  // Returns, for a mixture of experts, the token number of each row (0) or the index of its gate (1).
  Array routed(const Call& c, std::size_t number) const;
  ExpertRows expert_rows(const Call& c) const;
  long routed_rows(const Call& c) const;  // of all experts on this rank
  RouterShape router_shape(const Array& gates) const;
  void for_each_expert(const Call& c, const Array& matrices,
                       const std::function<void(long first, long count, const Array& matrix)>& each) const;
  void expert_product(const Call& c, const Array& x, WeightRole role, const Array& y);
  void expert_to_input(const Call& c, const Array& dy, WeightRole role);
  void expert_to_weight(const Call& c, const Array& dy, WeightRole role);
  void backward_input(const Call& c);
  void backward_weight(const Call& c);
  void backward_heads(const Call& c, bool of_weights);
  void backward_norms(const Call& c, bool of_weights);
  void backward_up(const Call& c, bool of_weights);
  void backward_attention(const Call& c);
  void backward_loss(const Call& c);
  void backward_experts(const Call& c, bool of_weights);
  void backward_combine(const Call& c);
  Array in(const Call& c, int input = 0) { return values_->input(c.stream, c.segment, input, c.microbatch); }
  Array out(const Call& c, int output = 0) const { return values_->output(c.segment, output, c.microbatch); }
  Array above(const Call& c, int output = 0) {
    return values_->output_gradient(c.stream, c.segment, output, c.microbatch);
  }
  // Calls `write` with the array for the gradient of an input, or adds the result to it if other readers have
  // already written it.
  void give(const Call& c, int input, const std::function<void(const Array&)>& write);
  Weight* find_weight(int segment, WeightRole role);
  Array weight(const Call& c, WeightRole role);
  // `accumulate`: the gradient already has contributions of this step.
  struct GradientOf {
    Array array;
    bool accumulate = false;
  };
  GradientOf gradient(const Call& c, WeightRole role);
  Array saved(const Call& c, std::size_t number) const;
  Array scratch(std::size_t number, std::size_t elements) const {
    return scratch_[number]->part(0, elements);
  }

  // y = x w, and the two halves of its backward pass.
  void product(const Call& c, const Array& x, WeightRole role, const Array& y);
  void product_to_input(const Call& c, const Array& dy, WeightRole role, int input);
  void product_to_weight(const Call& c, const Array& x, const Array& dy, WeightRole role);
  void add_bias(const Call& c, WeightRole role, const Array& y);
  void bias_to_weight(const Call& c, WeightRole role, const Array& dy);
  TokenRows token_rows(const Call& c) const;
  long own_samples() const;  // per micro-batch
  long tokens_here(SegmentKind kind) const;
  bool rotates(const Call& c) const;
  void rotate(const Call& c, bool keys, bool back, const Array& x);
  bool sums_experts(int segment) const;
  // Returns the dropout after a residual branch or the embedding, or that of attention.
  Dropout dropout(const Call& c) const;
  int ring_ranks(const Call& c) const { return static_cast<int>(c.what->steps.size()); }  // 0: no ring
  Array keys_at_hand(const Call& c);                                                      // keys and values
  AttentionShape attention_shape(const Call& c, const Array& q, const Array& kv) const;
  NormRows norm_rows(const Call& c, const Array& x, bool keys) const;
  void for_each_summed(const SharedSum& sum,
                       const std::function<void(const Array& gradient, const Array& packed)>& of);
  void write_table_gradient(const Call& c);
  void write_tied_gradient(const Call& c);

  Arithmetic& arithmetic_;
  std::unique_ptr<TransformerArithmetic> operations_;
  const Transformer& shape_;
  const NetworkPart part_;
  const int microbatches_;
  const DimSizes sizes_;
  const std::vector<Layer> model_;
  const Shards shards_;
  const Walk walk_;
  const TokenOrder order_;
  const std::shared_ptr<const SampleSource> data_;
  const std::uint64_t seed_;
  const long head_, value_head_;
  const float loss_scale_;
  const bool experts_apart_;  // experts are on separate ranks
  const bool table_copy_;     // the last layer, if held here, has a separate table
  bool tells_loss_ = false;
  LayerWeights weights_;
  std::map<int, std::vector<Weight>> weights_of_;  // by segment
  std::unique_ptr<ValueStore> values_;
  // By segment: data that its backward pass needs besides its tensors, by number and micro-batch.
  std::map<int, std::vector<std::vector<OwnedArray>>> saved_;
  // By layer and micro-batch: the first row of each expert, and last the number of rows.
  std::map<std::pair<int, int>, std::vector<long>> first_rows_;
  std::vector<OwnedArray> scratch_;
  std::array<RingKeys, 2> rings_;  // for forward passes and for others; see ring()
  bool rings_apart_ = false;
  RingKeys& ring(bool of_forward_pass) { return rings_[rings_apart_ && !of_forward_pass ? 1 : 0]; }
  OwnedArray summed_;  // gradients in transit
  // The last layer's contribution to the gradient of a tied table that both layers share on this rank.
  OwnedArray tied_;
  bool tied_filled_ = false;
  bool shares_table_ = false;                          // this rank has both the first and the last layer
  long given_by_logits_ = 0, given_by_embedding_ = 0;  // number of micro-batch gradients of that table
  std::vector<long> kept_;                             // by slot: the step stored there
  std::vector<std::size_t> slot_at_work_;              // by micro-batch: that of its last forward pass
  EqualArrays tokens_, labels_, losses_;               // by slot and micro-batch
  EqualArrays samples_;                                // sample numbers, if the model has dropout
};

// Returns the rows of a product, for x [rows, inputs], y [rows, outputs] and w [inputs, outputs].
long product_rows(const Array& x, const Array& y, const Array& w);

}  // namespace rehearse
