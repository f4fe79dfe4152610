// Tests cuDNN's convolutions against plain loops in double precision, if there is a GPU.
#ifdef REHEARSE_HAVE_CUDA

#include <cmath>

#include "backend/cuda/convolutions.hpp"
#include "tests/gpu_numbers.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

using ConvolutionPass = ConvolutionShape::Pass;

ConvolutionShape shape(double samples, int in, int out, int height, int width, int kernel_height,
                       int kernel_width, int stride, int padding_height, int padding_width) {
  ConvolutionShape s;
  s.samples = samples;
  s.in_channels = in, s.out_channels = out;
  s.height = height, s.width = width;
  s.kernel_height = kernel_height, s.kernel_width = kernel_width;
  s.stride = stride;
  s.padding_height = padding_height, s.padding_width = padding_width;
  return s;
}

// Calls `with` for each product of a convolution with the elements of x, w and y that it uses.
template <class With>
void for_products(const ConvolutionShape& s, With with) {
  const int samples = static_cast<int>(s.samples);
  for (int n = 0; n < samples; ++n)
    for (int o = 0; o < s.out_channels; ++o)
      for (int h = 0; h < s.out_height(); ++h)
        for (int w = 0; w < s.out_width(); ++w)
          for (int c = 0; c < s.in_channels; ++c)
            for (int i = 0; i < s.kernel_height; ++i)
              for (int j = 0; j < s.kernel_width; ++j) {
                const int row = h * s.stride - s.padding_height + i,
                          column = w * s.stride - s.padding_width + j;
                if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
                with(static_cast<std::size_t>(((n * s.in_channels + c) * s.height + row) * s.width + column),
                     static_cast<std::size_t>(
                         ((o * s.in_channels + c) * s.kernel_height + i) * s.kernel_width + j),
                     static_cast<std::size_t>(
                         ((n * s.out_channels + o) * s.out_height() + h) * s.out_width() + w));
              }
}

void check(CudaArithmetic& device, Convolutions& convolutions, const ConvolutionShape& s,
           Precision precision) {
  const ConvolutionSizes sizes = convolutions.sizes(s, precision);
  GpuNumbers x(device, some(1, sizes.x), precision), w(device, some(2, sizes.w), precision),
      y(device, some(3, sizes.y), precision);
  const GpuNumbers workspace(device, sizes.workspace / 4 + 1, Precision::fp32);
  GpuNumbers& result = s.pass == ConvolutionPass::forward          ? y
                       : s.pass == ConvolutionPass::backward_input ? x
                                                                   : w;
  std::vector<double> expected(result.values().size(), 0);
  for_products(s, [&](std::size_t ix, std::size_t iw, std::size_t iy) {
    if (s.pass == ConvolutionPass::forward) expected[iy] += x.values()[ix] * w.values()[iw];
    if (s.pass == ConvolutionPass::backward_input) expected[ix] += y.values()[iy] * w.values()[iw];
    if (s.pass == ConvolutionPass::backward_weight) expected[iw] += x.values()[ix] * y.values()[iy];
  });
  convolutions.run(s, precision, {x, w, y, workspace});
  result.read();
  double worst = 0, most = 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(result.values()[i] - expected[i]));
    most = std::max(most, std::abs(expected[i]));
  }
  // tf32 has as many fraction bits as fp16.
  const double unit = unit_of(precision == Precision::tf32 ? Precision::fp16 : precision);
  CHECK(worst <= (2 * unit + 64 * unit_of(Precision::fp32)) * most);
}

}  // namespace

TEST_CASE("convolutions on a GPU", "[gpu]") {
  const auto device = gpu_or_none();
  if (!device) return;
  std::unique_ptr<Convolutions> convolutions;
  try {
    convolutions = std::make_unique<Convolutions>(device->stream(0));
  } catch (const RunError& why) {
    WARN("skipped: " << why.what());
    return;
  }
  CHECK(convolutions->version().find('.') != std::string::npos);
  for (ConvolutionShape s : {shape(2, 8, 16, 9, 9, 3, 3, 1, 1, 1), shape(1, 8, 8, 11, 11, 3, 3, 2, 1, 1),
                             shape(3, 16, 8, 6, 6, 1, 1, 1, 0, 0), shape(1, 8, 8, 12, 12, 1, 7, 1, 0, 3)})
    for (const ConvolutionPass pass :
         {ConvolutionPass::forward, ConvolutionPass::backward_input, ConvolutionPass::backward_weight})
      for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
        CAPTURE(name_of(precision), static_cast<int>(pass), s.kernel_height, s.stride);
        s.pass = pass;
        check(*device, *convolutions, s, precision);
      }
  for (const Precision precision : {Precision::fp8, Precision::mxfp8, Precision::nvfp4})
    CHECK_THROWS_AS(convolutions->sizes(shape(1, 8, 8, 9, 9, 3, 3, 1, 1, 1), precision), RunError);
}

TEST_CASE("convolutions are replayed on a GPU as what they are", "[gpu]") {
  const auto device = gpu_or_none();
  if (!device) return;
  Kernel kernel;
  kernel.kind = Kernel::Kind::convolution;
  kernel.convolution = shape(2, 8, 16, 9, 9, 3, 3, 1, 1, 1);
  kernel.m = 2 * 81, kernel.n = 16, kernel.k = 8 * 9;
  kernel.count = 2;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    const Replayed done = device->replay(0, kernel, precision);
    device->settle(0);
    CHECK(done.flops == kernel.flops());
    const double product = 162 * 72 + 72 * 16 + 162 * 16, own = 2 * 8 * 81 + 8 * 16 * 9 + 2 * 16 * 81;
    CHECK(done.bytes == 2 * element_bytes(precision) * (done.convolution ? own : product));
  }
  REQUIRE(device->notes().size() == 1);
  CHECK(device->notes().front().find("convolutions were computed ") == 0);
}

#endif
