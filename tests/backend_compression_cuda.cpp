// Tests, step by step, that a GPU compresses gradients as processors do.
#ifdef REHEARSE_HAVE_CUDA

#include <cmath>
#include <random>

#include "backend/cuda/cuda_compressor.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

// Returns gradients with few distinct magnitudes, so that many are equal.
std::vector<float> some_gradients(std::size_t elements, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<float> gradients(elements);
  for (float& g : gradients)
    g = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0x1p-12f + 0x1p-26f;
  return gradients;
}

// Compares device and host for a single rank, which receives what it sends.
void check_alike(CudaArithmetic& device, const CompressionTask& task, const std::vector<int>& parts,
                 double margin) {
  std::size_t elements = 0;
  for (const DenseLayer& layer : task.layers)
    elements += static_cast<std::size_t>((layer.inputs + 1) * layer.outputs);
  const auto host = gradient_compressor(task.choice, task.layers, 0, 1, task.seed, task.bucket);
  const auto compressor = cuda_compressor(device, task);
  const OwnedArray on_device(device, elements, Precision::fp32);
  for (unsigned step = 0; step < 3; ++step) {
    CAPTURE(step);
    std::vector<float> expected = some_gradients(elements, step + 1), found(elements);
    device.copy_to_device(0, expected.data(), on_device);
    for (const int part : parts) {
      host->compute(part, expected);
      compressor->compute(0, part, on_device);
    }
    device.copy_to_host(0, on_device, found.data());
    std::size_t different = 0;
    for (std::size_t i = 0; i < elements; ++i)
      if (!(std::abs(found[i] - expected[i]) <= margin)) ++different;
    CHECK(different == 0);
  }
}

}  // namespace

TEST_CASE("training on a GPU compresses gradients as processors do", "[gpu]") {
  std::unique_ptr<CudaArithmetic> device;
  try {
    device = std::make_unique<CudaArithmetic>(0, 1);
  } catch (const RunError& why) {
    WARN("skipped: " << why.what());
    return;
  }
  CompressionTask task;
  task.seed = 7;
  for (const std::vector<DenseLayer>& layers :
       {std::vector<DenseLayer>{{4, 3}}, {{70, 50}, {50, 61}, {61, 3}}, {{300, 111}}}) {
    CAPTURE(layers.size(), layers.front().inputs);
    task.layers = layers;
    task.choice.kind = Compression::fp16;
    check_alike(*device, task, {0, 2}, 0);
    task.choice.kind = Compression::top_k;
    for (const double density : {0.001, 0.1, 1.0}) {
      CAPTURE(density);
      task.choice.density = density;
      check_alike(*device, task, {0, 2}, 0);
    }
    task.choice.kind = Compression::one_bit;
    check_alike(*device, task, {0, 2, 4}, 1e-6);
    task.choice.kind = Compression::power_sgd;
    task.choice.rank = 2;
    const bool factored = layers.front().inputs > 4;
    check_alike(*device, task, factored ? std::vector<int>{0, 2, 4} : std::vector<int>{0, 2}, 1e-5);
  }
}

#endif
