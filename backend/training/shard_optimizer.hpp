// Holds the weights of a parameter server's share and the state of their optimizer.
#pragma once

#include <vector>

#include "backend/training/arithmetic.hpp"

namespace rehearse {

class ShardOptimizer {
public:
  // `initial`: the share's weights in fp32 (initial_weights() in perceptron.hpp, divided by share_begin()).
  ShardOptimizer(Arithmetic& arithmetic, int stream, const std::vector<float>& initial,
                 const OptimizerSettings& optimizer, Precision precision = Precision::fp32);

  // Applies one optimizer step with `gradient`, which is as long as the share and on the same device.
  void apply(int stream, const Array& gradient);
  const Array& weights() const { return weights_; }
  long steps() const { return steps_; }
  void set_steps(long steps) { steps_ = steps; }
  // Return the arrays of the state: the weights in fp32, and the moments, empty if there are none.
  Array master_weights() const { return master_->elements > 0 ? master_ : weights_; }
  const Array& momentum() const { return momentum_; }
  const Array& second_moment() const { return second_moment_; }

private:
  Arithmetic& arithmetic_;
  OptimizerSettings optimizer_;
  OwnedArray weights_, master_, momentum_, second_moment_;
  long steps_ = 0;
};

}  // namespace rehearse
