// Stores weights, gradients and optimizer state of the layers that a rank holds, one layer after the other.
#pragma once

#include <vector>

#include "backend/training/arithmetic.hpp"
#include "backend/training/state_slice.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

class LayerWeights {
public:
  struct Layer {
    int number = 0;  // index in the model
    std::size_t parameters = 0;
    std::size_t offset = 0;  // in the flat arrays, in elements
    long steps = 0;          // optimizer steps so far
  };

  LayerWeights() = default;
  // `layers` must be ascending. Gradients and state are 0; the caller sets the weights. Throws RunError if
  // the device does not support a precision.
  LayerWeights(Arithmetic& arithmetic, std::vector<Layer> layers, const OptimizerSettings& optimizer,
               Precision precision, Precision gradient_precision);

  bool holds(int layer) const;
  // Return flat arrays, layer after layer. All of `layers` must be held, else throw std::out_of_range.
  Array weights(LayerRange layers) const { return flat(weights_, layers); }
  Array gradients(LayerRange layers) const { return flat(gradients_, layers); }
  Array all_weights() const { return weights_; }
  Array master_weights(LayerRange layers) const;  // fp32; with fp32 weights, the weights themselves
  // Must be called after master weights were changed from outside.
  void cast_weights(int stream, LayerRange layers);
  // Returns the master weights and the moments of all layers, without a place.
  std::vector<HeldState> state() const;
  // Must be called after they were changed from outside, to those after `steps` optimizer steps.
  void restored(int stream, long steps);
  // Applies one optimizer step. Steps are counted separately for each layer.
  void update(int stream, LayerRange layers);

private:
  Layer& at(int layer);
  const Layer& at(int layer) const;
  Array flat(const OwnedArray& whole, LayerRange layers) const;

  Arithmetic* arithmetic_ = nullptr;
  OptimizerSettings optimizer_;
  std::vector<Layer> layers_;
  OwnedArray weights_, master_, gradients_, momentum_, second_moment_;
};

// Returns the precision in which numbers are stored: tf32 only affects products and is stored as fp32.
Precision stored_as(Precision precision);

}  // namespace rehearse
