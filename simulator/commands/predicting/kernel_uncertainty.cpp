#include "simulator/commands/predicting/kernel_uncertainty.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/commands/predicting/device_constants.hpp"
#include "simulator/commands/predicting/propagation.hpp"

namespace rehearse {
namespace {

// Standard deviations of ln(time) of kernels that have the same prediction, or are predicted by the same
// share of the peak. DeepBench's products, of every other shape
// (benchmarks/measurements/deepbench-products.csv): those that differ only in which operand is transposed
// differ by 3.1 % if both sides of the result are at least kSmallSide (56 degrees of freedom). Below, errors
// are 34 % (102 rows), of which 20 % are between operands transposed and not, and 10 % are covered by the
// uncertainty of tiles. Fused attention of sequences of 512 tokens
// (benchmarks/measurements/flash-attention-h100.csv): 30 % around its shares, which come from 4,096 tokens,
// where it is 10 to 20 %. Single convolutions of DeepBench: errors of 27 to 36 % in the mean of their sizes,
// 1.25 times which are a standard deviation (topologies/presets/devices/{p100,v100}.toml). Other kernels are
// assumed to scatter like large products.
constexpr double kSmallSide = 128, kScatterOfProducts = 0.031, kScatterOfSmallProducts = 0.33;
constexpr double kLongSequence = 2048, kScatterOfShortAttention = 0.27;
constexpr double kScatterOfConvolutions = 0.39;

double scatter_of(const KernelQuestion& question) {
  if (question.kind->name == "gemm" && std::min(question.sizes[0], question.sizes[1]) < kSmallSide)
    return kScatterOfSmallProducts;
  if (question.kind->name == "convolution") return kScatterOfConvolutions;
  if (question.attention != AttentionKernels::unfused && question.sizes[2] < kLongSequence)
    return kScatterOfShortAttention;
  return kScatterOfProducts;
}

}  // namespace

Uncertainty kernel_uncertainty(const KernelQuestion& question, const Device& device,
                               const std::string& place) {
  const double predicted_s = answer(question, device, place).time_s;
  std::vector<Uncertainty::Effect> effects;
  for (const DeviceConstant& constant : device_constants()) {
    if (!constant.uncertain(device)) continue;
    Device copy = device;
    const Sourced& number = constant.in(copy);
    const auto with = [&](double deviations) {
      return answer(question, constant.changed(device, std::exp(deviations * number.deviation())), place)
          .time_s;
    };
    effects.push_back({fmt::format("{} {}", device.name, constant.key), number.basis, number.deviation(),
                       with(1), with(-1)});
  }
  return propagated(predicted_s, std::move(effects), scatter_of(question));
}

}  // namespace rehearse
