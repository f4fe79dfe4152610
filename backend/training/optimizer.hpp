// Defines the optimizers: their formulas and their default constants.
#pragma once

#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// With g the gradient, t the step's number from 1 on, everything in fp32:
//   sgd       w <- w - rate g
//   momentum  u <- momentum u + g;  w <- w - rate u    (Sutskever et al. 2013 with the rate outside of u)
//   adam      m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2;
//             w <- w - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)
//             (Kingma and Ba 2015, algorithm 1)
struct OptimizerSettings {
  Optimizer kind = Optimizer::sgd;
  float learning_rate = 0;
  float momentum = 0.9f;
  float beta1 = 0.9f, beta2 = 0.999f;  // Kingma and Ba's
  // BERT's (google-research/bert, optimization.py). With Kingma and Ba's 1e-8, the first step makes
  // full-sized updates from gradients that are hardly more than rounding errors: losses of the same training
  // summed in another order then differ by up to 8e-6 within 50 steps of models/presets/mlp.toml, with this
  // value by 3e-7.
  float epsilon = 1e-6f;
};

// Returns the default settings, with rates 0.1 for sgd, 0.01 for momentum and 0.001 for adam (Kingma and
// Ba's). With batches of 64, the mean loss of 50 steps of models/presets/mlp.toml falls from 3.27 to 0.84,
// 0.99 and 0.39 (mean of the last ten).
OptimizerSettings default_settings(Optimizer kind);

constexpr bool has_momentum(Optimizer kind) {
  return kind != Optimizer::sgd;
}
constexpr bool has_second_moment(Optimizer kind) {
  return kind == Optimizer::adam;
}

}  // namespace rehearse
