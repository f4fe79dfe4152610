// Declares what a rank trains, for any model: the layers that it holds, or its shards of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/loading/sample_source.hpp"
#include "backend/training/arithmetic.hpp"
#include "backend/training/ring_keys.hpp"
#include "backend/training/state_slice.hpp"
#include "backend/training/weight_runs.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/collective.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

// Segments [first, end) of the model, numbered through all layers.
struct SegmentRange {
  int first = 0, end = 0;
  int ring_step = 0;  // ring attention: keys and values are those of the rank this far back
};

// A collective that changes the placement of value `value` of `layer` (models/segment.hpp) or of its
// gradient: step `step` of the walk's route `route` (simulator/strategies/programs/walk.hpp).
struct ValueTransfer {
  int layer = 0, value = 0, microbatch = 0;
  bool of_gradient = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
  int route = -1, step = 0;
  // By member of the group: its coordinate on each factor (see factor_coordinates()). `self` is this rank's
  // index.
  const std::vector<std::vector<int>>* members = nullptr;
  int self = 0;
};

// Gradients of which each rank that shares the layers along these factors has a partial sum.
struct SharedSum {
  LayerRange layers;
  unsigned factors = 0;  // one bit per factor
};

// The part of a network that a rank computes, and how it does so.
struct NetworkPart {
  std::vector<LayerRange> held;  // ascending and disjoint; several for interleaved stages
  std::vector<int> coordinates;  // of the rank, on each factor that shards layers
  int summed = 1;                // number of ranks' batches whose gradients are summed
  bool loss_elsewhere = false;   // the last layer returns its logits and receives their gradient
  bool splits_backward = false;
  bool sum_microbatches = true;           // false: each micro-batch's gradients overwrite the previous ones
  std::vector<int> change_streams = {0};  // streams on which placements of values change
  std::shared_ptr<const SampleSource> samples;  // null: those that the scenario names
};

// Only one thread at a time calls forward and backward functions, and update() only for layers whose
// gradients are not being written; other threads may use gradients and boundary activations that are settled.
// Steps count from 0; only the data of the latest steps are stored.
class TrainedNetwork {
public:
  virtual ~TrainedNetwork() = default;

  virtual int layers() const = 0;  // of the complete model
  virtual bool holds(int layer) const = 0;
  // Returns the shape of a held layer's only matrix on this rank: m inputs, n outputs. Throws RunError if the
  // model's layers have several matrices.
  virtual MatrixShape matrix(int layer) const = 0;

  // Provides the inputs and labels of this rank's micro-batches of `step`, given the sample numbers in order.
  // Does nothing if neither the first nor the last layer is held.
  virtual void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) = 0;
  // Takes those of one micro-batch from samples that were read before, complete rows one after the other.
  virtual void take_batch(int stream, long step, int microbatch, const std::vector<std::uint64_t>& samples,
                          const std::vector<float>& rows) = 0;
  // Returns the array for the inputs of a step's micro-batch, for callers that fill it instead of using
  // these.
  virtual Array input(long step, int microbatch) = 0;

  virtual void forward_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;
  // Repeats forward_segments() for the backward pass.
  virtual void recompute_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;
  // The first micro-batch of a step that computes a gradient overwrites it; the others add to it.
  virtual void backward_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;
  // The two halves of a backward pass with NetworkPart::splits_backward: first the gradients of the inputs
  // and, at any later time, those of the weights.
  virtual void backward_input_segments(int stream, int microbatch, SegmentRange segments) = 0;
  virtual void backward_weight_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;

  // begin_transfer() returns the buffer of a collective between two segments, filled with this rank's data;
  // end_transfer() takes the result out of it. Throws RunError if no such value is exchanged.
  virtual Array begin_transfer(int stream, const ValueTransfer& transfer) = 0;
  virtual void end_transfer(int stream, const ValueTransfer& transfer) = 0;
  // Returns the data that a message of ring attention (segment `segment` of the model) sends, or the buffer
  // in which it is received. Throws RunError if the segment has none.
  virtual Array ring_message(int stream, int segment, int microbatch, const RingMessage& message, bool send);
  virtual Array begin_sum(int stream, const SharedSum& sum) = 0;
  virtual void end_sum(int stream, const SharedSum& sum) = 0;
  // Returns the gradient of the tied embedding table, if the first and the last layer are on different ranks;
  // empty if this layer has no such table.
  virtual Array tied_gradient(int layer) const = 0;

  virtual void update(int stream, LayerRange layers) = 0;
  // Returns the sum of the losses of this rank's samples in `step`, whose data must still be stored; 0 if the
  // last layer is not held. Waits for the stream.
  virtual double take_loss(int stream, long step) = 0;
  // Returns whether this rank reports losses: the first one of those with the same losses does.
  virtual bool tells_loss() const = 0;

  // Returns the output of a held layer or of the layer before a held range, which another stage sends, as
  // stages exchange it. Throws std::out_of_range for other layers.
  virtual Array activation(int microbatch, int layer) const = 0;
  // Returns the gradient of an activation: for the last layer of a held range (from another stage or the
  // loss) and for the layer before a held range (for another stage).
  virtual Array activation_gradient(int microbatch, int layer) const = 0;
  // Brings such an activation, or its gradient, into the placement in which this rank sends it.
  virtual void begin_send(int stream, int microbatch, int layer, bool of_gradient) {
    (void)stream, (void)microbatch, (void)layer, (void)of_gradient;
  }

  // See LayerWeights: the state of all held layers, and its change from outside.
  virtual std::vector<HeldState> state() const = 0;
  virtual void restored(int stream, long steps) = 0;

  // Return flat arrays, layer after layer. All of `layers` must be held, else throw std::out_of_range.
  virtual Array weights(LayerRange layers) const = 0;
  virtual Array gradients(LayerRange layers) const = 0;
  virtual Array all_weights() const = 0;  // of all held layers
  // Returns the positions, among the weights of these layers, of the weights of one part (Action::part).
  virtual std::vector<WeightRun> runs(LayerRange layers, int part) const {
    return part == 0 ? std::vector<WeightRun>{{0, weights(layers).elements}} : std::vector<WeightRun>();
  }
  // Returns the weights that every rank which shares the layers holds in full.
  virtual std::vector<Array> replicated_weights(LayerRange layers) const = 0;
};

// Returns the reason why no network of the scenario's model can be trained; empty if one can.
std::string why_no_network(const Scenario& scenario);
// `kept_steps` is the number of steps whose inputs, labels and losses stay on the device.
std::unique_ptr<TrainedNetwork> make_network(const Scenario& scenario, NetworkPart part, long kept_steps,
                                             Arithmetic& arithmetic);
// Returns the bytes of a step's inputs, labels and losses on a rank that holds these layers.
double batch_bytes(const Scenario& scenario, const std::vector<LayerRange>& held);
// Return the initial weights of these layers on the rank at these coordinates, and their number.
std::vector<float> initial_weights(const Scenario& scenario, LayerRange layers,
                                   const std::vector<int>& coordinates);
std::size_t parameters_of(const Scenario& scenario, LayerRange layers, const std::vector<int>& coordinates);

}  // namespace rehearse
