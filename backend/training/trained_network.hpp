// What a rank trains, whatever the model is: the layers that it holds, or its shards of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/training/arithmetic.hpp"
#include "backend/training/ring_keys.hpp"
#include "backend/training/weight_runs.hpp"
#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/collective.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

// Segments [first, end) of the model, counted through all layers.
struct SegmentRange {
  int first = 0, end = 0;
  int ring_step = 0;  // of ring attention: which rank's keys and values it attends to, counted backwards
};

// One collective that changes the placement of value `value` of `layer` (models/segment.hpp), or of its
// gradient: step `step` of the walk's route `route` (simulator/strategies/programs/walk.hpp).
struct ValueTransfer {
  int layer = 0, value = 0, microbatch = 0;
  bool of_gradient = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
  int route = -1, step = 0;
  // By member of the group: its coordinate on each factor (factor_coordinates()). `self`: this rank's number.
  const std::vector<std::vector<int>>* members = nullptr;
  int self = 0;
};

// Gradients of which each rank that shares some layers on these factors has a summand.
struct SharedSum {
  LayerRange layers;
  unsigned factors = 0;  // a bit each
};

// Which part of a network a rank computes, and how.
struct NetworkPart {
  std::vector<LayerRange> held;  // ascending and apart; several for interleaved stages
  std::vector<int> coordinates;  // of the rank, on each factor that shares out layers
  int summed = 1;                // batches like its own whose gradients are added up
  bool loss_elsewhere = false;   // the last layer gives its logits, and is given their gradient
  bool splits_backward = false;
  bool sum_microbatches = true;           // false: each one's gradients take the place of those before
  std::vector<int> change_streams = {0};  // streams on which its values change their placement
};

// forward() and backward() are called by one thread at a time, update() for layers whose gradients are not
// written meanwhile; other threads may use gradients and boundary activations that are settled. Steps count
// from 0; data are kept for the latest steps alone.
class TrainedNetwork {
public:
  virtual ~TrainedNetwork() = default;

  virtual int layers() const = 0;  // of the whole model
  virtual bool holds(int layer) const = 0;
  // Of a held layer's only matrix here: m inputs, n outputs. RunError if the model's layers have several.
  virtual MatrixShape matrix(int layer) const = 0;

  // Makes the inputs and labels of this rank's micro-batches for `step`: sample numbers in their order.
  // Nothing is done where neither the first nor the last layer is held.
  virtual void set_batch(int stream, long step, const std::vector<std::uint64_t>& samples) = 0;
  // Where the inputs of a step's micro-batch stand, for who makes them elsewhere, in place of set_batch().
  virtual Array input(long step, int microbatch) = 0;

  virtual void forward_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;
  // The same again, for the backward pass.
  virtual void recompute_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;
  // The first micro-batch of a step that comes to a gradient overwrites it, the others add to it.
  virtual void backward_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;
  // The two halves of a backward pass, where NetworkPart::splits_backward: the gradients of the inputs, then,
  // whenever that is wanted, those of the weights.
  virtual void backward_input_segments(int stream, int microbatch, SegmentRange segments) = 0;
  virtual void backward_weight_segments(int stream, long step, int microbatch, SegmentRange segments) = 0;

  // The buffer of a collective between two segments, filled with what this rank brings; end_transfer() takes
  // out what has come. RunError if no such value is exchanged.
  virtual Array begin_transfer(int stream, const ValueTransfer& transfer) = 0;
  virtual void end_transfer(int stream, const ValueTransfer& transfer) = 0;
  // What a message of attention in a ring (segment `segment` of the model) sends, or where it is received.
  // RunError if there is none.
  virtual Array ring_message(int stream, int segment, int microbatch, const RingMessage& message, bool send);
  virtual Array begin_sum(int stream, const SharedSum& sum) = 0;
  virtual void end_sum(int stream, const SharedSum& sum) = 0;
  // The gradient of the table that the first and the last layer have in common, where they are on different
  // ranks; empty if this layer has none.
  virtual Array tied_gradient(int layer) const = 0;

  virtual void update(int stream, LayerRange layers) = 0;
  // Sum of the losses of this rank's samples in `step`, whose data are still kept; 0 where the last layer is
  // not held. Waits for the stream.
  virtual double take_loss(int stream, long step) = 0;
  // Whether this rank tells losses: of those that know the same ones, the first does.
  virtual bool tells_loss() const = 0;

  // A held layer's output, or that of the layer before a held range, which another stage sends, as stages
  // exchange it. std::out_of_range otherwise.
  virtual Array activation(int microbatch, int layer) const = 0;
  // Its gradient: of the last layer of a held range (another stage sends it, or the loss gives it) and of the
  // layer before a held range (for another stage).
  virtual Array activation_gradient(int microbatch, int layer) const = 0;

  // Flat, layer after layer; `layers` must be held without a gap. std::out_of_range otherwise.
  virtual Array weights(LayerRange layers) const = 0;
  virtual Array gradients(LayerRange layers) const = 0;
  virtual Array all_weights() const = 0;  // of all that are held
  // The positions, among the weights of these layers, of the weights that belong to one part (Action::part).
  virtual std::vector<WeightRun> runs(LayerRange layers, int part) const {
    return part == 0 ? std::vector<WeightRun>{{0, weights(layers).elements}} : std::vector<WeightRun>();
  }
  // Those that every rank which shares the layers has whole.
  virtual std::vector<Array> replicated_weights(LayerRange layers) const = 0;
};

// Why no network of the scenario's model can be trained; empty if one can.
std::string why_no_network(const Scenario& scenario);
// `kept_steps`: of how many steps inputs, labels and losses are kept on the device.
std::unique_ptr<TrainedNetwork> make_network(const Scenario& scenario, NetworkPart part, long kept_steps,
                                             Arithmetic& arithmetic);
// Of a step's inputs, labels and losses on a rank that holds these layers.
double batch_bytes(const Scenario& scenario, const std::vector<LayerRange>& held);
// The weights that training begins with, of layers first to last on the rank at these coordinates, and how
// many there are.
std::vector<float> initial_weights(const Scenario& scenario, LayerRange layers,
                                   const std::vector<int>& coordinates);
std::size_t parameters_of(const Scenario& scenario, LayerRange layers, const std::vector<int>& coordinates);

}  // namespace rehearse
