// Computes forward passes, backward passes and updates of those layers of a multi-layer perceptron, or shards
// of them, that one rank holds. Layer i maps widths[i] to widths[i + 1]. A ReLU with a smooth knee follows
// every layer but the model's last, which is followed by softmax cross-entropy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "backend/training/equal_arrays.hpp"
#include "backend/training/layer_shard.hpp"
#include "backend/training/layer_weights.hpp"
#include "backend/training/sample_sources.hpp"
#include "backend/training/trained_network.hpp"
#include "models/segment.hpp"
#include "simulator/schedule/op.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

struct PerceptronOptions {
  std::vector<LayerRange> held;    // of this rank, ascending and disjoint; several for interleaved stages
  std::vector<LayerShard> shards;  // by layer of the model; empty: complete layers
  long micro_batch = 1;            // samples
  int microbatches = 1;            // per step, of this rank
  double batch_samples = 1;  // the loss is a mean over these: those of all ranks whose gradients are added
  OptimizerSettings optimizer;
  Precision precision = Precision::fp32;           // of weights and activations
  Precision gradient_precision = Precision::fp32;  // of the weights' gradients
  std::uint64_t seed = 1;                          // of weights and data
  bool sum_microbatches = true;  // false: each micro-batch's gradients overwrite the previous ones
  bool loss_elsewhere = false;   // the last layer returns its logits and receives their gradient
  bool keeps_gradients = false;  // of every layer's output, by micro-batch, for split backward passes
  bool tells_loss = true;        // if the last layer is held
  long kept_steps = 2;           // number of steps whose inputs, labels and losses stay on the device
  std::shared_ptr<const SampleSource> samples;  // null: made from the seed
};

// Returns the initial weights of a layer, or of a shard of it, as a flat vector: matrix [inputs, outputs],
// then bias. They depend only on seed and layer: normal with variance 2 / inputs (He et al. 2015), biases 0.
std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, int layer,
                                   const LayerShard& shard = {});
// Returns the initial weights of several layers, one after the other, with which a parameter server starts.
// `shards` is as in PerceptronOptions.
std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, LayerRange layers,
                                   const std::vector<LayerShard>& shards);

class Perceptron : public TrainedNetwork {
public:
  // Throws RunError if the shape, the held layers or the precision are invalid.
  Perceptron(Arithmetic& arithmetic, const MultiLayerPerceptron& shape, PerceptronOptions options);

  int layers() const override { return static_cast<int>(widths_.size()) - 1; }
  bool holds(int layer) const override { return weights_.holds(layer); }
  std::size_t parameters(int layer) const;  // elements that this rank holds
  MatrixShape matrix(int layer) const override;

  void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) override;
  void take_batch(int stream, long step, int microbatch, const std::vector<std::uint64_t>& samples,
                  const std::vector<float>& rows) override;
  Array input(long step, int microbatch) override;
  void forward(int stream, long step, int microbatch, LayerRange layers);
  // Runs from the last of `layers` down to the first.
  void backward(int stream, long step, int microbatch, LayerRange layers);
  void forward_segments(int stream, long step, int microbatch, SegmentRange segments) override;
  void recompute_segments(int stream, long step, int microbatch, SegmentRange segments) override {
    forward_segments(stream, step, microbatch, segments);
  }
  void backward_segments(int stream, long step, int microbatch, SegmentRange segments) override;
  void backward_input_segments(int stream, int microbatch, SegmentRange segments) override;
  void backward_weight_segments(int stream, long step, int microbatch, SegmentRange segments) override;

  Array begin_transfer(int stream, const ValueTransfer& transfer) override;
  void end_transfer(int stream, const ValueTransfer& transfer) override;
  Array begin_sum(int stream, const SharedSum& sum) override;
  void end_sum(int stream, const SharedSum& sum) override;
  Array tied_gradient(int) const override { return {}; }

  void update(int stream, LayerRange layers) override { weights_.update(stream, layers); }
  double take_loss(int stream, long step) override;
  bool tells_loss() const override { return options_.tells_loss && holds(layers() - 1); }

  // Both are [micro_batch, widths[layer + 1]].
  Array activation(int microbatch, int layer) const override;
  Array activation_gradient(int microbatch, int layer) const override;

  std::vector<HeldState> state() const override { return weights_.state(); }
  void restored(int stream, long steps) override { weights_.restored(stream, steps); }
  Array weights(LayerRange layers) const override { return weights_.weights(layers); }
  Array all_weights() const override { return weights_.all_weights(); }
  std::vector<Array> replicated_weights(LayerRange layers) const override;
  Array gradients(LayerRange layers) const override { return weights_.gradients(layers); }
  Array master_weights(LayerRange layers) const { return weights_.master_weights(layers); }
  void cast_weights(int stream, LayerRange layers) { weights_.cast_weights(stream, layers); }

private:
  struct HeldLayer {
    int number = 0;
    SegmentKind kind = SegmentKind::dense;  // of its matrix product
    LayerShard shard;
    long inputs = 0, outputs = 0;  // of this rank's part of the matrix
    // This rank's rows of the micro-batch: in the layer's input as received, in the product, and in the
    // output.
    long input_rows = 0, rows = 0, output_rows = 0;
    std::size_t parameters = 0;
    bool begins_range = false, ends_range = false;
    long gradient_step = -1;                                  // the step to which the gradient belongs
    bool accumulates = false;                                 // the current micro-batch adds to it
    std::vector<OwnedArray> input, output;                    // per micro-batch; input: from another stage
    std::vector<OwnedArray> input_gradient, output_gradient;  // output_gradient: one, or per micro-batch
    std::vector<OwnedArray> gathered_gradient;                // per micro-batch, if backward passes are split
  };

  LayerShard shard_of(int layer) const;
  void add_held(int number);
  void allocate_flat(const MultiLayerPerceptron& shape);
  void allocate_activations(HeldLayer& layer);
  void allocate_batches();
  void allocate_transfers();
  HeldLayer& held(int layer);
  const HeldLayer& held(int layer) const;
  // Returns the slot of a step's micro-batch among the stored ones; throws std::out_of_range if the step is
  // not stored.
  std::size_t slot(long step, int microbatch) const;
  Array input_of(const HeldLayer& layer, long step, int microbatch) const;
  Array operand(Array array) const;
  Array output_gradient_of(const HeldLayer& layer, int microbatch) const;
  Array input_gradient_of(const HeldLayer& layer, int microbatch) const;
  Array product_of(const HeldLayer& layer, int microbatch) const;
  Array matrix_of(const HeldLayer& layer, const Array& parameters) const;
  Array bias_of(const HeldLayer& layer, const Array& parameters) const;
  SegmentRange segments_of(LayerRange layers) const;
  void forward_segment(int stream, long step, int microbatch, int segment);
  // The parts of a layer's backward pass that a segment does.
  struct BackwardStep {
    HeldLayer& layer;
    bool bias = false, product = false;
  };
  BackwardStep backward_step(int segment);
  void add_bias(int stream, int microbatch, const HeldLayer& layer);
  void take_losses(int stream, long step, int microbatch, SegmentKind segment);
  void backward_activation(int stream, int microbatch, const HeldLayer& layer);
  void backward_bias(int stream, long step, int microbatch, HeldLayer& layer);
  // Returns the gradient of the product's output, for the rows of the product.
  Array product_gradient_of(const HeldLayer& layer, int microbatch) const;
  void backward_to_input(int stream, int microbatch, const HeldLayer& layer, const Array& gradient);
  void backward_to_matrix(int stream, long step, int microbatch, const HeldLayer& layer,
                          const Array& gradient);
  SegmentKind maker_of(const ValueTransfer& transfer) const;
  void for_each_shared(LayerRange layers,
                       const std::function<void(const Array& gradient, const Array& packed)>& of);

  Arithmetic& arithmetic_;
  std::vector<long> widths_;
  PerceptronOptions options_;
  std::vector<Layer> model_;                   // of complete layers
  std::vector<std::pair<int, int>> segments_;  // of the model: layer, and index in the layer
  std::shared_ptr<const SampleSource> data_;
  std::vector<HeldLayer> held_;
  LayerWeights weights_;
  std::vector<long> kept_;                // by slot: step s is stored in slot s modulo the number of slots
  EqualArrays inputs_, labels_, losses_;  // by slot and micro-batch
  // Buffers for exchanges between ranks that share layers. Only one transfer is in progress at a time.
  OwnedArray gathered_, summands_, shared_gradients_;
  OwnedArray maxima_, sums_, label_logits_;  // of the samples' logits, if ranks share the classes
};

}  // namespace rehearse
