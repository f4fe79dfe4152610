// The layers of a multi-layer perceptron that one rank holds, or its shards of them: forward, backward and
// update, really computed. Layer i maps widths[i] to widths[i + 1]; a ReLU with a smooth knee follows all but
// the model's last, softmax cross-entropy that.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "backend/training/equal_arrays.hpp"
#include "backend/training/layer_shard.hpp"
#include "backend/training/sample_data.hpp"
#include "models/segment.hpp"
#include "simulator/schedule/op.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

struct PerceptronOptions {
  std::vector<LayerRange> held;    // of this rank, ascending and apart; several for interleaved stages
  std::vector<LayerShard> shards;  // by layer of the model; empty: whole layers
  long micro_batch = 1;            // samples
  int microbatches = 1;            // a step, of this rank
  double batch_samples = 1;        // the loss is their mean: of all ranks whose gradients are added
  OptimizerSettings optimizer;
  Precision precision = Precision::fp32;           // of weights and activations
  Precision gradient_precision = Precision::fp32;  // of the weights' gradients
  std::uint64_t seed = 1;                          // of weights and data
  bool sum_microbatches = true;  // false: each one's gradients take the place of those before
  bool loss_elsewhere = false;   // the last layer gives its logits, and is given their gradient
  bool keeps_gradients = false;  // of every layer's output, by micro-batch: backward passes are split
  long kept_steps = 2;           // of how many steps inputs, labels and losses are kept on the device
};

// Weights of a layer, or of a shard of it, as a flat vector: matrix [inputs, outputs], then bias. From seed
// and layer alone: normal with variance 2 / inputs (He et al. 2015), biases 0.
std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, int layer,
                                   const LayerShard& shard = {});
// Those of layers first to last one after the other: what a parameter server begins with. `shards`: as in
// PerceptronOptions.
std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, LayerRange layers,
                                   const std::vector<LayerShard>& shards);

// Segments [first, end) of the model, counted through all layers.
struct SegmentRange {
  int first = 0, end = 0;
};

// A collective that carries value `value` of `layer` (models/segment.hpp), or its gradient, to another
// placement.
struct ValueTransfer {
  int layer = 0, value = 0, microbatch = 0;
  bool of_gradient = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
};

// forward() and backward() are called by one thread at a time, update() for layers whose gradients are not
// written meanwhile; other threads may use gradients and boundary activations that are settled. Steps count
// from 0; data are kept for the latest `kept_steps` of them.
class Perceptron {
public:
  // RunError if the shape, the held layers or the precision cannot be.
  Perceptron(Arithmetic& arithmetic, const MultiLayerPerceptron& shape, PerceptronOptions options);

  int layers() const { return static_cast<int>(widths_.size()) - 1; }  // of the whole model
  bool holds(int layer) const;
  std::size_t parameters(int layer) const;  // elements here
  MatrixShape matrix(int layer) const;      // of a held layer's weights here: m inputs, n outputs

  // Makes the inputs and labels of this rank's micro-batches for `step`: sample numbers in their order,
  // micro_batch x microbatches of them. Nothing is done where neither the first nor the last layer is held.
  void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples);
  // Where the inputs of a step's micro-batch stand, for who makes them elsewhere, in place of set_batch().
  Array input(long step, int microbatch);
  void forward(int stream, long step, int microbatch, LayerRange layers);
  // From the last of `layers` down. The first micro-batch of a step that comes to a layer overwrites its
  // gradient, the others add to it.
  void backward(int stream, long step, int microbatch, LayerRange layers);
  // The same for some segments.
  void forward_segments(int stream, long step, int microbatch, SegmentRange segments);
  void backward_segments(int stream, long step, int microbatch, SegmentRange segments);
  // The two halves of a backward pass, where PerceptronOptions::keeps_gradients: the gradients of the inputs,
  // then, whenever that is wanted, those of the weights.
  void backward_input_segments(int stream, int microbatch, SegmentRange segments);
  void backward_weight_segments(int stream, long step, int microbatch, SegmentRange segments);

  // The buffer of a collective between forward() or backward() of two segments, filled with what this rank
  // brings; end_transfer() takes out what has come. RunError if no such value is exchanged.
  Array begin_transfer(int stream, const ValueTransfer& transfer);
  void end_transfer(int stream, const ValueTransfer& transfer);
  // The same for the gradients of those weights of `layers` of which each rank that shares them has a
  // summand.
  Array begin_sum(int stream, LayerRange layers);
  void end_sum(int stream, LayerRange layers);

  // One step of the optimizer. Each layer's steps are counted on their own.
  void update(int stream, LayerRange layers);
  // Sum of the losses of this rank's samples in `step`, whose data are still kept; 0 where the last layer is
  // not held. Waits for the stream.
  double take_loss(int stream, long step);

  // [micro_batch, widths[layer + 1]]: a held layer's output, or that of the layer before a held range, which
  // another stage sends. std::out_of_range otherwise.
  Array activation(int microbatch, int layer) const;
  // Its gradient: of the last layer of a held range (another stage sends it, or the loss gives it) and of the
  // layer before a held range (for another stage).
  Array activation_gradient(int microbatch, int layer) const;

  // Flat, layer after layer; `layers` must be held without a gap. std::out_of_range otherwise.
  Array weights(LayerRange layers) const;
  Array all_weights() const { return weights_; }  // of all that are held
  // Matrices and biases that every rank which shares the layers has whole.
  std::vector<Array> replicated_weights(LayerRange layers) const;
  Array gradients(LayerRange layers) const;
  Array master_weights(LayerRange layers) const;  // fp32; the weights themselves in fp32
  // To be called when master weights were changed from outside.
  void cast_weights(int stream, LayerRange layers);

private:
  struct HeldLayer {
    int number = 0;
    SegmentKind kind = SegmentKind::dense;  // of its product
    LayerShard shard;
    long inputs = 0, outputs = 0;  // of the matrix here
    // Rows of the micro-batch here: of the layer's input as it comes, in the product, of the output.
    long input_rows = 0, rows = 0, output_rows = 0;
    std::size_t offset = 0, parameters = 0;  // in the flat arrays
    bool begins_range = false, ends_range = false;
    long steps = 0;                                           // of the optimizer
    long gradient_step = -1;                                  // the step that the gradient is of
    bool accumulates = false;                                 // the micro-batch at work adds to it
    std::vector<OwnedArray> input, output;                    // per micro-batch; input: of another stage
    std::vector<OwnedArray> input_gradient, output_gradient;  // output_gradient: one, or per micro-batch
    std::vector<OwnedArray> gathered_gradient;  // per micro-batch, where backward passes are split
  };

  LayerShard shard_of(int layer) const;
  void add_held(int layer);
  void allocate_flat(const MultiLayerPerceptron& shape);
  void allocate_activations(HeldLayer& layer);
  void allocate_batches();
  void allocate_transfers();
  HeldLayer& held(int layer);
  const HeldLayer& held(int layer) const;
  // Where a step's micro-batch stands among the kept ones; std::out_of_range if its step is not there.
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
  // What of a layer's backward pass a segment does.
  struct BackwardStep {
    HeldLayer& layer;
    bool bias = false, product = false;
  };
  BackwardStep backward_step(int segment);
  void add_bias(int stream, int microbatch, const HeldLayer& layer);
  void take_losses(int stream, long step, int microbatch, SegmentKind segment);
  void backward_activation(int stream, int microbatch, const HeldLayer& layer);
  void backward_bias(int stream, long step, int microbatch, HeldLayer& layer);
  // Of the product's output, as the product's rows need it.
  Array product_gradient_of(const HeldLayer& layer, int microbatch) const;
  void backward_to_input(int stream, int microbatch, const HeldLayer& layer, const Array& gradient);
  void backward_to_matrix(int stream, long step, int microbatch, const HeldLayer& layer,
                          const Array& gradient);
  SegmentKind maker_of(const ValueTransfer& transfer) const;
  void for_each_shared(LayerRange layers,
                       const std::function<void(const Array& gradient, const Array& packed)>& of);
  Array flat(const OwnedArray& whole, LayerRange layers) const;

  Arithmetic& arithmetic_;
  std::vector<long> widths_;
  PerceptronOptions options_;
  std::vector<Layer> model_;                   // of whole layers
  std::vector<std::pair<int, int>> segments_;  // of the model: layer, and number in it
  SampleData data_;
  std::vector<HeldLayer> held_;
  OwnedArray weights_, master_, gradients_, momentum_, second_moment_;
  std::vector<long> kept_;                // by slot: step s is kept in slot s modulo their count
  EqualArrays inputs_, labels_, losses_;  // by slot and micro-batch
  // What is exchanged between ranks that share layers. One transfer is under way at a time.
  OwnedArray gathered_, summands_, shared_gradients_;
  OwnedArray maxima_, sums_, label_logits_;  // of the samples' logits, where ranks share the classes
};

}  // namespace rehearse
