// Tests which convolutions a calibration measures and how it classifies them, on a device that computes
// nothing.
#include <algorithm>
#include <tuple>

#include "backend/calibrate/measure_compute.hpp"
#include "backend/host/host_arithmetic.hpp"
#include "models/kernels.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

class IdleDevice : public HostArithmetic {
public:
  explicit IdleDevice(bool convolves) : convolves_(convolves) {}
  Array allocate(std::size_t elements, Precision precision) override {
    return {nullptr, elements, precision};
  }
  Timed time(int, const std::function<void()>&) override { return {1e-3, 0}; }
  void add(int, const Array&, const Array&) override {}
  void update(int, const OptimizerSettings&, long, const OptimizerArrays&) override {}
  void nothing(int) override {}
  Replayed replay(int, const Kernel& kernel, Precision) override {
    const bool whole = kernel.convolution.samples > 0;
    return {kernel.flops(), kernel.bytes, convolves_ && whole};
  }
  std::vector<std::string> notes() const override { return {"nothing was computed"}; }

private:
  const bool convolves_;
};

}  // namespace

TEST_CASE("a calibration measures ResNet-50's convolutions, as what the device computes them") {
  using Shape = std::tuple<double, double, double>;  // m, n, k for 1 and for 8 images
  std::vector<Shape> expected;
  for (const double images : {1, 8})
    for (const auto& [m, n, k] : {Shape{12544, 64, 147}, Shape{3136, 64, 576}, Shape{784, 128, 1152},
                                  Shape{196, 256, 2304}, Shape{49, 512, 4608}, Shape{196, 1024, 256}})
      expected.emplace_back(m * images, n, k);
  std::sort(expected.begin(), expected.end());
  for (const bool convolves : {false, true}) {
    CAPTURE(convolves);
    IdleDevice device(convolves);
    const ComputeMeasurements found = measure_compute(device, 1e6, {}, [](const std::string&, double) {});
    CHECK(found.notes == device.notes());
    std::vector<Shape> shapes;
    for (const KernelSample& sample : found.kernels) {
      const Kernel& kernel = sample.kernel;
      if (kernel.kind != Kernel::Kind::convolution || sample.precision != Precision::fp32) continue;
      shapes.emplace_back(kernel.m, kernel.n, kernel.k);
      const ConvolutionShape& s = kernel.convolution;
      CHECK(kernel.m == s.samples * s.out_height() * s.out_width());
      CHECK(kernel.n == s.out_channels);
      CHECK(kernel.k == s.in_channels * s.kernel_height * s.kernel_width);
      const double product = 4 * (kernel.m * kernel.k + kernel.k * kernel.n + kernel.m * kernel.n);
      const double own =
          4 * (s.samples * s.in_channels * s.height * s.width + kernel.k * kernel.n + kernel.m * kernel.n);
      CHECK(kernel.bytes == (convolves ? own : product));
      CHECK((kernel.winograd.batch > 0) == (convolves && s.kernel_height == 3));
    }
    std::sort(shapes.begin(), shapes.end());
    CHECK(shapes == expected);
  }
}
