// Tests the bytes of model states per parameter against the published counts.
#include "simulator/costs/memory.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("model states per parameter") {
  struct Case {
    Optimizer optimizer;
    Precision precision, gradient;
    double weight, gradients, state, moved;
  };
  const Case cases[] = {
      // Rajbhandari et al. (2020), section 3.1: 2 + 2 + 12.
      {Optimizer::adam, Precision::bf16, Precision::bf16, 2, 2, 12, 2 + 24 + 2},
      {Optimizer::adam, Precision::fp16, Precision::fp16, 2, 2, 12, 2 + 24 + 2},
      // Cast operands are not stored.
      {Optimizer::adam, Precision::mxfp8, Precision::bf16, 2, 2, 12, 2 + 24 + 2},
      {Optimizer::adam, Precision::nvfp4, Precision::bf16, 2, 2, 12, 2 + 24 + 2},
      // Gradients accumulated in fp32, as Megatron-LM and BLOOM do in bf16: 2 + 4 + 12.
      {Optimizer::adam, Precision::bf16, Precision::fp32, 2, 4, 12, 4 + 24 + 2},
      {Optimizer::adam, Precision::fp32, Precision::fp32, 4, 4, 8, 4 + 16 + 8},
      {Optimizer::momentum, Precision::fp32, Precision::fp32, 4, 4, 4, 4 + 8 + 8},
      {Optimizer::sgd, Precision::fp32, Precision::fp32, 4, 4, 0, 4 + 8},
      {Optimizer::sgd, Precision::fp16, Precision::fp16, 2, 2, 4, 2 + 8 + 2},
      // Sent in half precision, stored in full.
      {Optimizer::adam, Precision::fp32, Precision::fp16, 4, 4, 8, 4 + 16 + 8},
  };
  for (const Case& c : cases) {
    CAPTURE(static_cast<int>(c.optimizer), static_cast<int>(c.precision), static_cast<int>(c.gradient));
    const StateBytes bytes = state_bytes(c.optimizer, c.precision, c.gradient);
    CHECK(bytes.weight == c.weight);
    CHECK(bytes.gradient == c.gradients);
    CHECK(bytes.optimizer == c.state);
    CHECK(update_bytes(c.optimizer, c.precision, c.gradient) == c.moved);
  }
}

TEST_CASE("the states of 7.5 billion parameters take 120 GB") {
  // Figure 1 of Rajbhandari et al. (2020).
  CHECK(7.5e9 * state_bytes(Optimizer::adam, Precision::fp16, Precision::fp16).total() == 120e9);
}
