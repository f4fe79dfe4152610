// Tests `rehearse kernel`: it gives the times that simulations use, and refuses bad input.
#include <nlohmann/json.hpp>

#include "simulator/commands/predicting/kernel_question.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;
using nlohmann::json;

TEST_CASE("a kernel's time, rate and share follow from each other, and it is the time of simulations") {
  struct Case {
    const char* arguments;
    const char* device;
    Precision precision;
    double flops, bytes;  // counted by hand
  };
  for (const Case& c : {
           Case{"gemm 4096 2048 512 --device a100-80", "a100-80", Precision::bf16, 2.0 * 4096 * 2048 * 512,
                2.0 * (4096 * 512 + 512 * 2048 + 4096 * 2048)},
           Case{"gemm 64 32 128 --batch 10 --device v100 --precision fp32", "v100", Precision::fp32,
                20.0 * 64 * 32 * 128, 40.0 * (64 * 128 + 128 * 32 + 64 * 32)},
           // Filters of 3x3 over maps of 14x14, 16 samples.
           Case{"convolution 14 14 8 16 32 3 3 1 1 --device p100 --precision fp32", "p100", Precision::fp32,
                2.0 * 16 * 14 * 14 * 32 * 8 * 9, 4.0 * (16 * 14 * 14 * (8 + 32) + 32 * 8 * 9)},
           // Without padding and with a stride of 2: results of 6x4.
           Case{"convolution 13 9 8 1 32 3 3 0 0 2 2 --device v100 --precision fp16 --pass backward-weight",
                "v100", Precision::fp16, 2.0 * 6 * 4 * 32 * 8 * 9,
                2.0 * (13 * 9 * 8 + 6 * 4 * 32 + 32 * 8 * 9)},
           // Two products for 2 x 4 heads. Heads of 32 are copied side by side; scores are written, read,
           // written and read; queries, keys and values are read once and the result is written.
           Case{"attention 2 4 256 32 --device h100", "h100", Precision::bf16, 4.0 * 8 * 256 * 256 * 32,
                2.0 * 8 * (4.0 * 256 * 256 + 4 * 256 * 32 + 2 * 256 * 32)},
           // Half of the scores; queries, keys, values and result, and one logarithm in fp32 per query of
           // each head.
           Case{"attention 2 4 256 32 --device h100 --attention flash-3 --causal", "h100", Precision::bf16,
                2.0 * 8 * 256 * 256 * 32, 2.0 * 8 * 4 * 256 * 32 + 4.0 * 8 * 256},
           Case{"norm 100 64 --device h100", "h100", Precision::bf16, 0, 2.0 * 2 * 100 * 64},
           // Computes dx from x and dy, then reads both again for gain and bias.
           Case{"norm 100 64 --pass backward --device h100", "h100", Precision::bf16, 0, 2.0 * 5 * 100 * 64},
       }) {
    CAPTURE(c.arguments);
    const Outcome run = run_rehearse(std::string("kernel ") + c.arguments + " --format json");
    CAPTURE(run.err, run.out);
    REQUIRE(run.status == 0);
    const json told = json::parse(run.out);
    const Device device = device_preset(c.device);
    const double seconds = told["time_s"].get<double>();
    CHECK(told["device"] == c.device);
    CHECK(told["precision"] == name_of(c.precision));
    CHECK(told["tflops"].get<double>() == Approx(c.flops / seconds / 1e12));
    CHECK(told["share_of_peak"].get<double>() ==
          Approx(c.flops / seconds / device.peak_flops[static_cast<std::size_t>(c.precision)].value));
    CHECK(told["gb_per_s"].get<double>() == Approx(c.bytes / seconds / 1e9));

    KernelQuestion question;
    question.kind = &kernel_kind(told["kind"].get<std::string>());
    for (const std::string_view size : question.kind->sizes)
      if (told["shape"].contains(std::string(size)))
        question.sizes.push_back(told["shape"][std::string(size)].get<double>());
    for (std::size_t i = 0; i < kKernelPassNames.size(); ++i)
      if (told["pass"] == kKernelPassNames[i]) question.pass = static_cast<KernelPass>(i);
    question.precision = c.precision;
    if (told.contains("attention"))
      for (std::size_t i = 0; i < kAttentionKernelsNames.size(); ++i)
        if (told["attention"] == kAttentionKernelsNames[i])
          question.attention = static_cast<AttentionKernels>(i);
    question.causal = told.value("causal", false);
    double simulated_s = 0;
    for (const Kernel& kernel : kernels_of(question, "test"))
      simulated_s += kernel_time_s(kernel, device, c.precision);
    CHECK(seconds == simulated_s);
  }
}

TEST_CASE("what bounds a kernel is told, and its tiles and waves where it has some") {
  struct Case {
    const char* arguments;
    const char* told;
  };
  for (const Case& c : {
           Case{"gemm 8192 8192 8192 --device a100-80", "bound by   compute: "},
           Case{"gemm 8192 8192 8192 --device a100-80", "tiles      256 x 128, 19.0 waves\n"},
           Case{"norm 65536 4096 --device a100-80", "bound by   memory: "},
           Case{"norm 8 64 --device a100-80", "bound by   overhead: "},
           Case{"norm 8 64 --device a100-80", "Rests on: overhead of a kernel (guess): "},
           Case{"gemm 8192 8192 8192 --device a100-80", "Rests on: bf16 peak (published): NVIDIA A100 80GB"},
           Case{"gemm 8192 8192 8192 --device a100-80", "Rests on: 0.78 of it is reached (published): "},
           Case{"gemm 8192 8192 8192 --device v100", "bf16 (computed in fp32) on NVIDIA V100"},
           Case{"attention 1 8 1024 64 --device a100-80", "softmax  "},
       }) {
    CAPTURE(c.arguments);
    const Outcome run = run_rehearse(std::string("kernel ") + c.arguments);
    CAPTURE(run.err, run.out);
    CHECK(run.status == 0);
    CHECK(run.out.find(c.told) != std::string::npos);
  }
}

TEST_CASE("a kernel runs on a device of the user's file") {
  const Scratch scratch;
  const std::string chip =
      scratch.write("chip.toml",
                    "memory_gib = {value = 3, basis = \"guess\", source = \"a guess\"}\n"
                    "memory_gb_per_s = {value = 100, basis = \"guess\", source = \"a guess\"}\n"
                    "peak_tflops.fp32 = {value = 2, basis = \"measured\", source = \"by hand\"}\n");
  const Outcome run =
      run_rehearse("kernel gemm 1000 1000 1000 --precision fp32 --format csv --device " + chip);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out ==
        "kind,shape,pass,precision,device,time_s,tflops,share_of_peak,gb_per_s,bound\n"
        "gemm,1000 x 1000 x 1000,forward,fp32,chip,0.001,2,1,12,compute\n");
  const Outcome text = run_rehearse("kernel gemm 1000 1000 1000 --precision fp32 --device " + chip);
  CHECK(text.out.find("Rests on: 1 of it is reached (guess): not given\n") != std::string::npos);
}

TEST_CASE("a wrong question about a kernel is refused with what is allowed") {
  struct Case {
    const char* arguments;
    const char* said;
  };
  for (const Case& c : {
           Case{"gem 1 1 1 --device v100",
                "KIND: is \"gem\"; allowed: gemm, attention, convolution, norm; did you"},
           Case{"gemm 3 4 --device v100", "kernel gemm: gemm has 2 sizes; allowed: 3 to 4, m n k batch\n"},
           Case{"norm 3 4 5 --device v100", "kernel norm: norm has 3 sizes; allowed: 2, rows width\n"},
           Case{"gemm 3 4.5 3 --device v100",
                "kernel gemm: n is 4.5; allowed: a whole number from 1 to 100000000\n"},
           Case{"gemm 0 1 1 --device v100", "kernel gemm: m is 0; allowed: a whole number from 1 to"},
           Case{"gemm 1 1 nan --device v100", "kernel gemm: k is nan; allowed: a whole number"},
           Case{"gemm 1 1 1e9 --device v100", "kernel gemm: k is 1000000000; allowed: a whole number"},
           Case{"gemm 1 1 1 1 --batch 2 --device v100", "kernel gemm: --batch is given with a fourth size"},
           Case{"norm 2 3 --batch 4 --device v100",
                "kernel norm: --batch is given; allowed: with gemm only\n"},
           Case{"gemm 3 4 5 --device v10", "--device: there is no device \"v10\"; allowed: a10, a100-40, "},
           Case{"gemm 3 4 5 --device v100 --precision fp12", "--precision: is \"fp12\"; allowed: fp32, "},
           Case{"gemm 3 4 5 --device v100 --pass backward",
                "kernel gemm: the pass of gemm is backward; allowed: forward\n"},
           Case{
               "convolution 2 2 4 4 4 5 5 --device v100",
               "kernel convolution: the filter's width is 5; allowed: at most that of the padded input, 2\n"},
           Case{"convolution 9 9 4 4 4 3 3 1 1 1 2 --device v100",
                "kernel convolution: stride_h is 2 with stride_w = 1; allowed: the same stride"},
           Case{"gemm 3 4 5", "--device is required\n"},
           Case{"gemm 3 4 5 --device v100 --causal", "kernel gemm: gemm is causal; allowed: attention\n"},
           Case{"gemm 3 4 5 --device a100-80 --attention flash-2",
                "kernel gemm: gemm is computed by flash-2; allowed: attention\n"},
           Case{"attention 1 2 3 4 --device a100-80 --attention flash-3",
                "kernel attention: attention by flash-3, for which a100-80 has no efficiency; allowed: "
                "unfused, "
                "flash-1, flash-2\n"},
       }) {
    CAPTURE(c.arguments);
    const Outcome run = run_rehearse(std::string("kernel ") + c.arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CAPTURE(run.err);
    CHECK(run.err.rfind(c.said, 0) == 0);
  }
}
