// Runs the same training checks on a GPU, if there is one.
#ifdef REHEARSE_HAVE_CUDA

#include "backend/cuda/cuda_arithmetic.hpp"
#include "models/text/error.hpp"
#include "tests/backend_training_cases.hpp"

using namespace rehearse;
using namespace rehearse::training_cases;

namespace {

// Returns nullptr, after a warning with the reason, if no GPU is usable.
std::unique_ptr<CudaArithmetic> gpu() {
  try {
    return std::make_unique<CudaArithmetic>(0, 2);
  } catch (const RunError& why) {
    WARN("skipped: " << why.what());
    return nullptr;
  }
}

}  // namespace

TEST_CASE("training on a GPU in fp32", "[gpu]") {
  const auto device = gpu();
  if (!device) return;
  check_products(*device, Precision::fp32);
  check_layer_operations(*device, Precision::fp32);
  check_loss(*device, Precision::fp32);
  check_optimizers(*device, Precision::fp32);
  check_replay(*device, Precision::fp32);
  check_times(*device);
}

TEST_CASE("training on a GPU learns in fp32", "[gpu]") {
  const auto device = gpu();
  if (!device) return;
  check_gradients(*device);
  check_learning(*device, Precision::fp32);
}

TEST_CASE("training on a GPU in parts of a perceptron", "[gpu]") {
  const auto device = gpu();
  if (!device) return;
  check_cuts(*device);
  check_replicas(*device);
  check_preset_cuts(*device);
}

TEST_CASE("training on a GPU in bf16", "[gpu]") {
  const auto device = gpu();
  if (!device) return;
  try {
    (void)OwnedArray(*device, 1, Precision::bf16);
  } catch (const RunError& why) {
    WARN("skipped: " << why.what());
    return;
  }
  check_products(*device, Precision::bf16);
  check_layer_operations(*device, Precision::bf16);
  check_loss(*device, Precision::bf16);
  check_optimizers(*device, Precision::bf16);
  check_learning(*device, Precision::bf16);
  check_learning(*device, Precision::tf32);
  check_replay(*device, Precision::bf16);
  check_replay(*device, Precision::fp16);
}

#endif
