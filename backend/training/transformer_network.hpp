// The layers of a transformer that one rank holds, or its shards of them: every segment (models/segment.hpp)
// really computed, forward and backward. Which numbers ranks exchange between segments follows from the
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
#include "backend/training/token_data.hpp"
#include "backend/training/trained_network.hpp"
#include "backend/training/transformer_parameters.hpp"
#include "backend/training/value_store.hpp"

namespace rehearse {

class TransformerNetwork : public TrainedNetwork {
public:
  // The scenario's model is a transformer for which why_no_transformer() is empty. `factors`: of the axes
  // that share out layers, which are factors_of() the scenario. RunError if they or the device ask for what
  // is not computed here.
  TransformerNetwork(const Scenario& scenario, const std::vector<Factor>& factors, NetworkPart part,
                     long kept_steps, Arithmetic& arithmetic);

  int layers() const override { return static_cast<int>(model_.size()); }
  bool holds(int layer) const override { return weights_.holds(layer); }
  MatrixShape matrix(int layer) const override;

  void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) override;
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
  Array activation_gradient(int microbatch, int layer) const override {
    return values_->activation_gradient(microbatch, layer);
  }

  Array weights(LayerRange layers) const override { return weights_.weights(layers); }
  Array gradients(LayerRange layers) const override { return weights_.gradients(layers); }
  Array all_weights() const override { return weights_.all_weights(); }
  std::vector<WeightRun> runs(LayerRange layers, int part) const override;
  std::vector<Array> replicated_weights(LayerRange layers) const override;

private:
  // The pass of a segment at work.
  struct Call {
    int stream = 0;
    long step = 0;
    int microbatch = 0, segment = 0;  // the segment is of the model
    int layer = 0, ring_step = 0;
    const Segment* what = nullptr;
    bool in_forward_pass = false;  // else in a recomputation or a backward pass
    SegmentKind kind() const { return what->kind; }
  };
  struct Weight {  // of a segment
    int layer = 0;
    ParameterTensor tensor;
    long written = -1;  // the step (and micro-batch) that its gradient is of
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
  // Of a mixture of experts: by row, the number of its token (0), and that of its gate (1).
  Array routed(const Call& c, std::size_t number) const;
  ExpertRows expert_rows(const Call& c) const;
  long routed_rows(const Call& c) const;  // of all experts here
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
  // Writes the gradient of an input by `write`, which gets where to; or adds it.
  void give(const Call& c, int input, const std::function<void(const Array&)>& write);
  Weight* find_weight(int segment, WeightRole role);
  Array weight(const Call& c, WeightRole role);
  // `accumulate`: others have written to it in this step.
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
  long own_samples() const;  // of a micro-batch
  long tokens_here(SegmentKind kind) const;
  bool rotates(const Call& c) const;
  void rotate(const Call& c, bool keys, bool back, const Array& x);
  bool sums_experts(int segment) const;
  // After a residual branch or the embedding, or of attention.
  Dropout dropout(const Call& c) const;
  int ring_ranks(const Call& c) const { return static_cast<int>(c.what->steps.size()); }  // 0: no ring
  Array keys_at_hand(const Call& c);                                                      // and values
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
  const TokenData data_;
  const std::uint64_t seed_;
  const long head_, value_head_;
  const float loss_scale_;
  const bool experts_apart_;  // on ranks of their own
  const bool table_copy_;     // the last layer has its own, if it is held here
  bool tells_loss_ = false;
  LayerWeights weights_;
  std::map<int, std::vector<Weight>> weights_of_;  // by segment
  std::unique_ptr<ValueStore> values_;
  // By segment: what its backward pass needs besides its tensors, by number and micro-batch.
  std::map<int, std::vector<std::vector<OwnedArray>>> saved_;
  // By layer and micro-batch: the first row of each expert, and the number of rows.
  std::map<std::pair<int, int>, std::vector<long>> first_rows_;
  std::vector<OwnedArray> scratch_;
  std::array<RingKeys, 2>
      rings_;  // of forward passes and of others; the first for all, unless they take turns
  bool rings_apart_ = false;
  RingKeys& ring(bool of_forward_pass) { return rings_[rings_apart_ && !of_forward_pass ? 1 : 0]; }
  OwnedArray summed_;  // gradients on their way
  // Of the table that the first and the last layer have in common on this rank, what the last one gave.
  OwnedArray tied_;
  bool tied_filled_ = false;
  bool shares_table_ = false;                          // the first and the last layer are both here
  long given_by_logits_ = 0, given_by_embedding_ = 0;  // micro-batches' gradients of that table
  std::vector<long> kept_;                             // by slot
  std::vector<std::size_t> slot_at_work_;              // by micro-batch: of its last forward pass
  EqualArrays tokens_, labels_, losses_;               // by slot and micro-batch
  EqualArrays samples_;                                // their numbers, where something is dropped
};

// Of x [rows, inputs], y [rows, outputs] and w [inputs, outputs].
long product_rows(const Array& x, const Array& y, const Array& w);

}  // namespace rehearse
