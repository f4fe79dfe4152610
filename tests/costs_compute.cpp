// Tests kernel times against values computed by hand, and how they grow.
#include <cmath>
#include <string>

#include "models/kernels.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/costs/memory.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Device device(double compute_units = 0) {
  Device d;
  d.name = "test";
  d.peak_flops[static_cast<std::size_t>(Precision::fp32)].value = 10e12;
  d.peak_flops[static_cast<std::size_t>(Precision::bf16)].value = 100e12;
  d.memory_bandwidth.value = 1e12;
  d.gemm_efficiency.value = 0.8;
  d.convolution_efficiency.value = 0.5;
  d.attention_efficiency.value = 0.4;
  d.memory_efficiency.value = 0.5;
  d.compute_units = compute_units;
  return d;
}

Kernel kernel(Kernel::Kind kind, double m, double n, double k, double bytes = 0, double batch = 1) {
  Kernel result;
  result.kind = kind;
  result.m = m;
  result.n = n;
  result.k = k;
  result.batch = batch;
  result.bytes = bytes;
  return result;
}

using Kind = Kernel::Kind;

}  // namespace

TEST_CASE("kernels of a device without wave quantisation") {
  struct Case {
    std::string what;
    Kernel kernel;
    Precision precision;
    double microseconds;
  };
  Kernel measured;
  measured.kind = Kind::fixed;
  measured.seconds = 3e-6;
  measured.count = 2;
  Kernel three = kernel(Kind::memory, 0, 0, 0, 1e6);
  three.count = 3;
  const Case cases[] = {
      {"2 x 1000^3 / 80 TF/s", kernel(Kind::gemm, 1000, 1000, 1000), Precision::bf16, 25},
      {"the same in fp32: 8 TF/s", kernel(Kind::gemm, 1000, 1000, 1000), Precision::fp32, 250},
      {"fp8 without units: fp32's rate", kernel(Kind::gemm, 1000, 1000, 1000), Precision::fp8, 250},
      {"four of them in a batch", kernel(Kind::gemm, 1000, 1000, 1000, 0, 4), Precision::bf16, 100},
      {"its bytes take longer: 50 MB at 0.5 TB/s", kernel(Kind::gemm, 1000, 1000, 1000, 50e6),
       Precision::bf16, 100},
      {"convolution at 50 TF/s", kernel(Kind::convolution, 1000, 1000, 1000), Precision::bf16, 40},
      {"attention at 40 TF/s", kernel(Kind::attention, 1000, 1000, 1000), Precision::bf16, 50},
      {"1 MB at 0.5 TB/s", kernel(Kind::memory, 0, 0, 0, 1e6), Precision::bf16, 2},
      {"three of them", three, Precision::bf16, 6},
      {"measured", measured, Precision::bf16, 6},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(1e6 * kernel_time_s(c.kernel, device(), c.precision) == Approx(c.microseconds).epsilon(1e-9));
  }
  SECTION("of formats to which operands are cast, products alone have the rate") {
    struct Cast {
      Precision precision;
      double peak, gemm_microseconds;
    };
    for (const Cast& c : {Cast{Precision::fp8, 200e12, 12.5}, Cast{Precision::mxfp8, 200e12, 12.5},
                          Cast{Precision::nvfp4, 400e12, 6.25}}) {
      CAPTURE(name_of(c.precision));
      Device d = device();
      d.peak_flops[static_cast<std::size_t>(c.precision)].value = c.peak;
      const auto microseconds = [&](Kind kind) {
        return 1e6 * kernel_time_s(kernel(kind, 1000, 1000, 1000), d, c.precision);
      };
      CHECK(microseconds(Kind::gemm) == Approx(c.gemm_microseconds));
      CHECK(microseconds(Kind::convolution) == Approx(40));  // in bf16, as above
      CHECK(microseconds(Kind::attention) == Approx(50));
    }
  }
  SECTION("fused attention, by its generation and pass") {
    Device d = device();
    d.fused_attention[2] = {{0.6, Basis::guess, ""}, {0.3, Basis::guess, ""}};
    Kernel fused = kernel(Kind::fused_attention, 1000, 1000, 1000);
    fused.fused = AttentionKernels::flash_2;
    CHECK(kernel_time_s(fused, d, Precision::bf16) == Approx(2e9 / 60e12));
    CHECK(kernel_time(fused, d, Precision::bf16).bound == Bound::compute);
    fused.backward = true;
    CHECK(kernel_time_s(fused, d, Precision::fp8) == Approx(2e9 / 30e12));  // in bf16
    fused.bytes = 1e9;
    CHECK(kernel_time_s(fused, d, Precision::bf16) == Approx(2e-3));
    CHECK(d.has(AttentionKernels::flash_2));
    CHECK(d.has(AttentionKernels::unfused));
    CHECK_FALSE(d.has(AttentionKernels::flash_3));
  }
  SECTION("tensor cores need rows of attention's operands at multiples of 16 bytes") {
    Device d = device();
    d.compute_capability = 80;
    struct Head {
      double head;
      Precision precision;
      double rate;
    };
    for (const Head& c : {Head{96, Precision::bf16, 40e12}, Head{100, Precision::bf16, 4e12},
                          Head{100, Precision::fp32, 4e12}, Head{104, Precision::fp8, 40e12}}) {
      CAPTURE(c.head, c.rate);
      const double flops = 2.0 * 1024 * 1024 * c.head;
      CHECK(kernel_time_s(kernel(Kind::attention, 1024, 1024, c.head), d, c.precision) ==
            Approx(flops / c.rate));
      CHECK(kernel_time_s(kernel(Kind::attention, 1024, c.head, 1024), d, c.precision) ==
            Approx(flops / c.rate));
    }
  }
  SECTION("the prologue is some more of k") {
    Device d = device();
    d.gemm_prologue_k.value = 100;
    CHECK(kernel_time_s(kernel(Kind::gemm, 1000, 1000, 1000), d, Precision::bf16) == Approx(27.5e-6));
  }
  SECTION("every kernel pays the gap before the next one, measured ones contain it") {
    Device d = device();
    d.kernel_overhead_s.value = 1e-6;
    CHECK(kernel_time_s(three, d, Precision::bf16) == Approx(9e-6));
    CHECK(kernel_time_s(measured, d, Precision::bf16) == Approx(6e-6));
  }
}

TEST_CASE("a product whose operands are not cast takes what it takes in 16 bits") {
  Device d = device();
  d.peak_flops[static_cast<std::size_t>(Precision::fp8)].value = 200e12;
  Kernel product = kernel(Kind::gemm, 1024, 1024, 1024);
  const double narrow_s = kernel_time_s(product, d, Precision::fp8);
  product.wide = true;
  CHECK(kernel_time_s(product, d, Precision::fp8) == kernel_time_s(product, d, Precision::bf16));
  CHECK(kernel_time_s(product, d, Precision::fp8) > narrow_s);
}

TEST_CASE("a convolution is an implicit product or goes by Winograd's algorithm, whichever is faster") {
  Device gpu = device();
  gpu.compute_capability = 70;
  const Kernel implicit = kernel(Kind::convolution, 1000, 1000, 1000);  // 2 GFLOP at 5 TF/s: 400 us
  // 36 products of 100 x 1000 x 100 at 8 TF/s: 0.72 GFLOP, 90 us; 1 MB at 0.5 TB/s: 2 us.
  Kernel both = implicit;
  both.winograd = {100, 1000, 100, 36, 1e6};
  Kernel heavy = both;  // transforms that move 1 GB: 2 ms
  heavy.winograd.bytes = 1e9;
  Device old = gpu, processor = gpu;
  old.compute_capability = 60;
  processor.compute_capability = 0;
  struct Case {
    const char* what;
    const Device* device;
    Kernel kernel;
    Precision precision;
    double microseconds;
  };
  const Case cases[] = {
      {"no choice", &gpu, implicit, Precision::fp32, 400},
      {"Winograd's is faster", &gpu, both, Precision::fp32, 92},
      {"its transforms take too long", &gpu, heavy, Precision::fp32, 400},
      {"tensor cores: implicit, 50 TF/s", &gpu, both, Precision::bf16, 40},
      {"16 bits before tensor cores, 80 TF/s", &old, both, Precision::bf16, 11},
      {"a processor knows implicit products only", &processor, both, Precision::fp32, 400},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(1e6 * kernel_time_s(c.kernel, *c.device, c.precision) == Approx(c.microseconds).epsilon(1e-9));
  }
}

TEST_CASE("a convolution's long sums are split until the device is full") {
  // On a hundred units, the filters' gradient has 256 x 128 results, one tile, summed over 200 x 1024 pixels.
  // Split into as many parts as fill the device twice, 200 of 1024, it takes two full waves; unsplit it would
  // take just over 0.6 of a wave that is 200 times as long.
  const Device d = device(100);
  const double k = 200 * 1024.0;
  const double wave_s = 2.0 * 256 * 128 * 1024 * 100 / 50e12;
  CHECK(kernel_time_s(kernel(Kind::convolution, 256, 128, k), d, Precision::bf16) == Approx(2 * wave_s));
  // Below 2 x 1024 nothing is split: one tile on a hundred units costs 0.01 + 0.6 x 0.99 waves.
  const double short_s = 2.0 * 256 * 128 * 2047 * 100 / 50e12 * (0.01 + 0.6 * 0.99);
  CHECK(kernel_time_s(kernel(Kind::convolution, 256, 128, 2047), d, Precision::bf16) <= short_s * (1 + 1e-9));
}

TEST_CASE("single convolutions take about as long as DeepBench measured") {
  // baidu-research/DeepBench, results/train, DeepBench_NV_P100.xlsx (fp32) and DeepBench_NV_V100.xlsx (tensor
  // cores): 16 images, stride 1, sum of all three passes.
  struct Case {
    const char* device;
    Precision precision;
    double size, in, out, filter, milliseconds;
  };
  const Case cases[] = {{"p100", Precision::fp32, 112, 64, 128, 3, 2.321 + 2.098 + 3.732},
                        {"p100", Precision::fp32, 56, 128, 256, 3, 1.592 + 1.539 + 1.608},
                        {"p100", Precision::fp32, 28, 256, 512, 3, 1.356 + 1.351 + 1.332},
                        {"p100", Precision::fp32, 14, 512, 512, 3, 0.870 + 0.845 + 0.855},
                        {"p100", Precision::fp32, 56, 256, 64, 1, 0.265 + 0.362 + 0.369},
                        {"p100", Precision::fp32, 28, 128, 512, 1, 0.253 + 0.270 + 0.300},
                        {"p100", Precision::fp32, 14, 1024, 256, 1, 0.244 + 0.288 + 0.345},
                        {"v100", Precision::fp16, 28, 256, 512, 3, 0.310 + 0.378 + 0.330},
                        {"v100", Precision::fp16, 56, 64, 64, 3, 0.068 + 0.073 + 0.097},
                        {"v100", Precision::fp16, 56, 256, 64, 1, 0.050 + 0.069 + 0.059}};
  for (const Case& c : cases) {
    CAPTURE(c.device, c.size, c.in, c.out, c.filter);
    Convolution convolution;
    convolution.in_channels = c.in;
    convolution.out_channels = c.out;
    convolution.kernel = c.filter;
    convolution.padding = (c.filter - 1) / 2;
    convolution.in_size = convolution.out_size = c.size;
    ConvolutionalNet net;
    net.blocks = {{"first", {Convolution{}}}, {"measured", {convolution}}, {"last", {Convolution{}}}};
    Model model;
    model.shape = net;
    const LayerCost layer = layer_costs(model, {16, 0, c.precision, Recompute::none})[1];
    double seconds = 0;
    for (const auto* pass : {&layer.forward, &layer.backward_input, &layer.backward_weight})
      for (const Kernel& k : *pass) seconds += kernel_time_s(k, device_preset(c.device), c.precision);
    CHECK(1e3 * seconds == Approx(c.milliseconds).epsilon(0.45));
  }
}

TEST_CASE("convolutional networks train as fast as was published") {
  struct Case {
    const char *model, *device;
    double samples;
    Precision precision;
    double images_per_s;
    const char* source;
  };
  const Case cases[] = {
      {"resnet50", "p100", 64, Precision::fp32, 218, "TensorFlow, docs_src/performance/benchmarks.md"},
      {"vgg16", "p100", 64, Precision::fp32, 154, "TensorFlow, docs_src/performance/benchmarks.md"},
      {"vgg16", "v100", 128, Precision::fp32, 190, "msr-fiddle/pipedream, profiles/vgg16: sum of its layers"},
      {"resnet50", "v100", 256, Precision::fp16, 8056.0 / 8,
       "NVIDIA/DeepLearningExamples, PyTorch/Classification/ConvNets/resnet50v1.5: eight GPUs"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model, c.device, c.source);
    double seconds = 0;
    for (const LayerCost& layer :
         layer_costs(model_preset(c.model), {c.samples, 0, c.precision, Recompute::none}))
      for (const auto* pass : {&layer.forward, &layer.backward_input, &layer.backward_weight})
        for (const Kernel& k : *pass) seconds += kernel_time_s(k, device_preset(c.device), c.precision);
    CHECK(c.samples / seconds / c.images_per_s > 0.67);
    CHECK(c.samples / seconds / c.images_per_s < 1.5);
  }
}

TEST_CASE("matrix products come in tiles and waves") {
  // Ten compute units. A unit's time for a tile of 256x128 is the time of a full wave.
  const Device d = device(10);
  const double wave_s = 2.0 * 256 * 128 * 1000 * 10 / 80e12;
  struct Case {
    std::string what;
    double m, n;
    double waves;  // in units of a full wave of 256x128 tiles at their rate
  };
  const Case cases[] = {
      {"ten tiles of 256x128: one wave", 2560, 128, 1},
      {"the same turned", 128, 2560, 1},
      // Eleven tiles of 256x128 would cost 1.1 + 0.6 x 0.9 = 1.64 waves; 22 of 128x128 cost half of (2.2 +
      // 0.6 x 0.8) = 2.68, over 0.93, which is less.
      {"eleven tiles", 2816, 128, 2.68 / 2 / 0.93},
      // One tile of 64x64 in an eighth of a wave: (0.1 + 0.6 x 0.9) / 8 / 0.6; larger tiles waste more.
      {"a small product", 64, 64, 0.64 / 8 / 0.60},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(kernel_time_s(kernel(Kind::gemm, c.m, c.n, 1000), d, Precision::bf16) ==
          Approx(c.waves * wave_s).epsilon(1e-9));
  }
}

TEST_CASE(
    "products on GPUs are split along k where tiles of 64x64 leave units idle, and small tiles are tried") {
  Device gpu = device(10);
  gpu.compute_capability = 70;
  gpu.kernel_overhead_s.value = 1e-6;
  Device old = gpu;
  old.compute_capability = 60;
  // bf16 uses tensor cores from capability 70 on, fp32 never does.
  const double tensor = 80e12 / 10, single = 8e12 / 10;  // FLOP/s per unit
  struct Case {
    const char* what;
    const Device* device;
    Kernel kernel;
    Precision precision;
    ProductTime expected;
  };
  const Case cases[] = {
      // One tile of 64x64 at 0.60 of the rate, in ten parts of 10,000: a full wave. The sums of 10 parts of
      // 64x64 in fp32 are written and read at 0.5 TB/s, and there is another kernel.
      {"split into as many parts as units",
       &gpu,
       kernel(Kind::gemm, 64, 64, 1e5),
       Precision::bf16,
       {2.0 * 64 * 64 * 1e4 / (tensor * 0.60) + 8.0 * 64 * 64 * 10 / 0.5e12 + 1e-6, 64, 64, 10, 1}},
      {"parts have at least 512 elements",
       &gpu,
       kernel(Kind::gemm, 32, 32, 2000),
       Precision::fp32,
       {0.76 * 2.0 * 32 * 32 * 512 / (single * 0.58) + 8.0 * 32 * 32 * 4 / 0.5e12 + 1e-6, 32, 32, 4, 0.4}},
      // cuBLAS before Volta does not split: one of ten units computes, at a cost of 0.1 + 0.6 x 0.9 of a
      // wave.
      {"old libraries do not split",
       &old,
       kernel(Kind::gemm, 32, 32, 1e5),
       Precision::fp32,
       {0.64 * 2.0 * 32 * 32 * 1e5 / (single * 0.58), 32, 32, 1, 0.1}},
      {"a narrow product takes a narrow tile",
       &old,
       kernel(Kind::gemm, 640, 32, 1000),
       Precision::fp32,
       {2.0 * 64 * 32 * 1000 / (single * 0.72), 64, 32, 1, 1}},
      {"ten tiles of 64x64 fill the device: no split",
       &gpu,
       kernel(Kind::gemm, 640, 64, 1e5),
       Precision::bf16,
       {2.0 * 64 * 64 * 1e5 / (tensor * 0.60), 64, 64, 1, 1}},
      {"a matrix by a vector: no tiles",
       &gpu,
       kernel(Kind::gemm, 4096, 1, 4096),
       Precision::bf16,
       {2.0 * 4096 * 4096 / 80e12, 0, 0, 1, 0}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const KernelTime time = kernel_time(c.kernel, *c.device, c.precision);
    CHECK(time.product.seconds == Approx(c.expected.seconds).epsilon(1e-9));
    CHECK(time.product.tile_m == c.expected.tile_m);
    CHECK(time.product.tile_n == c.expected.tile_n);
    CHECK(time.product.split == c.expected.split);
    CHECK(time.product.waves == Approx(c.expected.waves));
  }
}

TEST_CASE("a large product on an A100 takes what cuBLAS is published to take") {
  // 0.78 of 312 TF/s and 85 elements of prologue give 240 TF/s for 8192^3 in bf16. The best result of a
  // search over all shapes is 271.2 (stas00/ml-engineering, "maximum achievable matmul FLOPS"), for short
  // runs.
  Device d = device(108);
  d.peak_flops[static_cast<std::size_t>(Precision::bf16)].value = 312e12;
  d.gemm_efficiency.value = 0.78;
  d.gemm_prologue_k.value = 85;
  const double s = kernel_time_s(kernel(Kind::gemm, 8192, 8192, 8192), d, Precision::bf16);
  const double rate = 2.0 * 8192 * 8192 * 8192 / s;
  CHECK(rate > 230e12);
  CHECK(rate < 271.2e12);
}

TEST_CASE("times grow with every dimension and, for large products, in proportion") {
  const Device d = device(108);
  for (double m = 16; m < 20000; m *= 1.7)
    for (double k = 16; k < 20000; k *= 3) {
      CAPTURE(m, k);
      const double one = kernel_time_s(kernel(Kind::gemm, m, 512, k), d, Precision::bf16);
      CHECK(kernel_time_s(kernel(Kind::gemm, 1.5 * m, 512, k), d, Precision::bf16) >= one);
      CHECK(kernel_time_s(kernel(Kind::gemm, m, 1024, k), d, Precision::bf16) >= one);
      CHECK(kernel_time_s(kernel(Kind::gemm, m, 512, 2 * k), d, Precision::bf16) == Approx(2 * one));
      CHECK(kernel_time_s(kernel(Kind::gemm, m, 512, k, 0, 2), d, Precision::bf16) >= one);
    }
  // Applies to library kernels of GPUs, too, whatever tile and split they choose: more tiles may come in
  // fewer parts, whose sums take less time to add.
  for (const char* name : {"p100", "v100", "a100-80", "h100"})
    for (const Precision precision : {Precision::fp32, Precision::fp16})
      for (double m = 1; m < 20000; m *= 1.7)
        for (double k = 16; k < 1e6; k *= 5) {
          const Device gpu = device_preset(name);
          const auto seconds = [&](double rows, double columns, double length) {
            return kernel_time_s(product(Kind::gemm, std::ceil(rows), columns, length, 4), gpu, precision);
          };
          CAPTURE(name, name_of(precision), m, k);
          const double small = seconds(m, 48, k);
          CHECK(seconds(1.5 * m, 48, k) >= 0.97 * small);
          CHECK(seconds(m, 96, k) >= 0.97 * small);
          CHECK(seconds(m, 48, 2 * k) >= small);
        }
  const double one = kernel_time_s(kernel(Kind::gemm, 16384, 16384, 4096), d, Precision::bf16);
  const double two = kernel_time_s(kernel(Kind::gemm, 32768, 16384, 4096), d, Precision::bf16);
  CHECK(two / one == Approx(2).epsilon(0.01));
}

TEST_CASE("a work item is its kernels and its update, on a device as fast as it is") {
  Work work;
  work.precision = Precision::bf16;
  work.kernels = {kernel(Kind::gemm, 1000, 1000, 1000), kernel(Kind::memory, 0, 0, 0, 1e6)};
  Device d = device();
  CHECK(work_time_s(work, d) == Approx(27e-6));
  CHECK(work_time_s(work, d, 0.5) == Approx(54e-6));

  SECTION("updates move bytes") {
    work.kernels.clear();
    d.compute_capability = 80;
    work.parameters_updated = 1e6;
    work.optimizer_bytes = 28e6;  // mixed-precision Adam
    CHECK(work_time_s(work, d) == Approx(56e-6));
    d.optimizer_bytes_per_parameter.value = 42;  // measured: 1.5 times as many
    CHECK(work_time_s(work, d) == Approx(84e-6));
    work.optimizer_bytes = 0;
    CHECK(work_time_s(work, d) == Approx(84e-6));
    work.optimizer_bytes = 14e6;  // another optimizer, scaled in proportion
    CHECK(work_time_s(work, d) == Approx(42e-6));
    // A processor's figure covers the arithmetic of Adam, which SGD and momentum do not have.
    d.compute_capability = 0;
    CHECK(work_time_s(work, d) == Approx(28e-6));
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const Optimizer optimizer : {Optimizer::adam, Optimizer::sgd, Optimizer::momentum}) {
        CAPTURE(precision, optimizer);
        work.precision = precision;
        work.optimizer_bytes = 1e6 * update_bytes(optimizer, precision, Precision::fp32);
        const double half_more = optimizer == Optimizer::adam ? 1.5 : 1;
        CHECK(work_time_s(work, d) == Approx(half_more * work.optimizer_bytes * 2e-12));
      }
  }
}
