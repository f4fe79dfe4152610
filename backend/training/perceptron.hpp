// The layers of a multi-layer perceptron that one rank holds: forward, backward and update, really computed.
// Layer i maps widths[i] to widths[i + 1]; a ReLU with a smooth knee follows all but the model's last,
// softmax cross-entropy that.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/training/equal_arrays.hpp"
#include "backend/training/sample_data.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

struct PerceptronOptions {
  std::vector<LayerRange> held;  // of this rank, ascending and apart; several for interleaved stages
  long micro_batch = 1;          // samples
  int microbatches = 1;          // a step, of this rank
  double batch_samples = 1;      // the loss is their mean: of all ranks whose gradients are added
  OptimizerSettings optimizer;
  Precision precision = Precision::fp32;           // of weights and activations
  Precision gradient_precision = Precision::fp32;  // of the weights' gradients
  std::uint64_t seed = 1;                          // of weights and data
  bool sum_microbatches = true;  // false: each one's gradients take the place of those before
  bool loss_elsewhere = false;   // the last layer gives its logits, and is given their gradient
  long kept_steps = 2;           // of how many steps inputs, labels and losses are kept on the device
};

// Weights of a layer as a flat vector: matrix [inputs, outputs], then bias. From seed and layer alone: normal
// with variance 2 / inputs (He et al. 2015), biases 0.
std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, int layer);
// Those of layers first to last one after the other: what a parameter server begins with.
std::vector<float> initial_weights(const MultiLayerPerceptron& shape, std::uint64_t seed, LayerRange layers);

// forward() and backward() are called by one thread at a time, update() for layers whose gradients are not
// written meanwhile; other threads may use gradients and boundary activations that are settled. Steps count
// from 0; data are kept for the latest `kept_steps` of them.
class Perceptron {
public:
  // RunError if the shape, the held layers or the precision cannot be.
  Perceptron(Arithmetic& arithmetic, const MultiLayerPerceptron& shape, PerceptronOptions options);

  int layers() const { return static_cast<int>(widths_.size()) - 1; }  // of the whole model
  bool holds(int layer) const;
  std::size_t parameters(int layer) const;  // elements

  // Makes the inputs and labels of this rank's micro-batches for `step`: sample numbers in their order,
  // micro_batch x microbatches of them. Nothing is done where neither the first nor the last layer is held.
  void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples);
  // Where the inputs of a step's micro-batch stand, for who makes them elsewhere, in place of set_batch().
  Array input(long step, int microbatch);
  void forward(int stream, long step, int microbatch, LayerRange layers);
  // From the last of `layers` down. The first micro-batch of a step that comes to a layer overwrites its
  // gradient, the others add to it.
  void backward(int stream, long step, int microbatch, LayerRange layers);
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
  Array gradients(LayerRange layers) const;
  Array master_weights(LayerRange layers) const;  // fp32; the weights themselves in fp32
  // To be called when master weights were changed from outside.
  void cast_weights(int stream, LayerRange layers);

private:
  struct Layer {
    int number = 0;
    long inputs = 0, outputs = 0;
    std::size_t offset = 0, parameters = 0;  // in the flat arrays
    bool begins_range = false, ends_range = false;
    long steps = 0;                                           // of the optimizer
    long gradient_step = -1;                                  // the step that the gradient is of
    std::vector<OwnedArray> input, output;                    // per micro-batch; input: of another stage
    std::vector<OwnedArray> input_gradient, output_gradient;  // output_gradient: one, or per micro-batch
  };

  void allocate_flat(const MultiLayerPerceptron& shape);
  void allocate_activations(Layer& layer);
  void allocate_batches();
  Layer& held(int layer);
  const Layer& held(int layer) const;
  // Where a step's micro-batch stands among the kept ones; std::out_of_range if its step is not there.
  std::size_t slot(long step, int microbatch) const;
  Array input_of(const Layer& layer, long step, int microbatch) const;
  Array operand(Array array) const;
  Array output_gradient_of(const Layer& layer, int microbatch) const;
  void forward_layer(int stream, long step, int microbatch, Layer& layer);
  void backward_layer(int stream, long step, int microbatch, Layer& layer);
  Array flat(const OwnedArray& whole, LayerRange layers) const;

  Arithmetic& arithmetic_;
  std::vector<long> widths_;
  PerceptronOptions options_;
  SampleData data_;
  std::vector<Layer> held_;
  OwnedArray weights_, master_, gradients_, momentum_, second_moment_;
  std::vector<long> kept_;                // by slot: step s is kept in slot s modulo their count
  EqualArrays inputs_, labels_, losses_;  // by slot and micro-batch
};

}  // namespace rehearse
