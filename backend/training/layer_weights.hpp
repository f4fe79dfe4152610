// Weights, gradients and the optimizer's state of the layers that a rank holds, one layer after the other.
#pragma once

#include <vector>

#include "backend/training/arithmetic.hpp"
#include "simulator/strategies/layout/stages.hpp"

namespace rehearse {

class LayerWeights {
public:
  struct Layer {
    int number = 0;  // in the model
    std::size_t parameters = 0;
    std::size_t offset = 0;  // in the flat arrays
    long steps = 0;          // of the optimizer
  };

  LayerWeights() = default;
  // `layers`: ascending. Gradients and state are 0, weights are to be set. RunError if the device has no
  // arithmetic for a precision.
  LayerWeights(Arithmetic& arithmetic, std::vector<Layer> layers, const OptimizerSettings& optimizer,
               Precision precision, Precision gradient_precision);

  bool holds(int layer) const;
  // Flat, layer after layer; `layers` must be held without a gap. std::out_of_range otherwise.
  Array weights(LayerRange layers) const { return flat(weights_, layers); }
  Array gradients(LayerRange layers) const { return flat(gradients_, layers); }
  Array all_weights() const { return weights_; }
  Array master_weights(LayerRange layers) const;  // fp32; the weights themselves in fp32
  // To be called when master weights were changed from outside.
  void cast_weights(int stream, LayerRange layers);
  // One step of the optimizer. Each layer's steps are counted on their own.
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

// How numbers of a precision are stored: tf32 is a way to multiply.
Precision stored_as(Precision precision);

}  // namespace rehearse
