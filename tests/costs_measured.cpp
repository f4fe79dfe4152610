// Tests how measured kernels correct the formula of similar ones, and that device files keep them.
#include <cmath>

#include "models/kernels.hpp"
#include "models/text/error.hpp"
#include "simulator/costs/compute.hpp"
#include "simulator/costs/measured_ratio.hpp"
#include "simulator/costs/memory.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Kernel gemm(double m, double n, double k, Transposed transposed = Transposed::none) {
  Kernel kernel = product(Kernel::Kind::gemm, m, n, k, 4);
  kernel.transposed = transposed;
  return kernel;
}

Device measured_device(std::vector<MeasuredKernel> rows) {
  Device device = device_preset("cpu-core");
  device.measured = std::make_shared<MeasuredKernels>(MeasuredKernels{std::move(rows), "made up"});
  return device;
}

}  // namespace

TEST_CASE("measured kernels correct the formula of similar kernels") {
  const RowArrays rows{4e6, 512, 4};
  const Device device = measured_device({
      {gemm(64, 512, 512), Precision::fp32, 3e-3, 1e-3},
      {gemm(64, 512, 512, Transposed::a), Precision::fp32, 5e-3, 1e-3},
      {gemm(1024, 512, 512), Precision::fp32, 1.5e-3, 1e-3},
      {norm_forward(rows), Precision::fp32, 1e-3, 2e-3},
  });
  // Weights 1 / d^4: between two kernels at the same distance, and with the formula at ln 16.
  const double d = std::log(4), formula = std::pow(1 / std::log(16), 4), w = std::pow(1 / d, 4);
  const double far = std::pow(1 / std::log(4096), 4), farther = std::pow(1 / std::log(65536), 4);
  struct Case {
    const char* what;
    Kernel kernel;
    Precision precision;
    double ratio;
  };
  const Case cases[] = {
      {"measured itself", gemm(64, 512, 512), Precision::fp32, 3},
      {"measured itself, transposed", gemm(64, 512, 512, Transposed::a), Precision::fp32, 5},
      {"never measured with this operand transposed", gemm(64, 512, 512, Transposed::b), Precision::fp32, 1},
      {"another precision", gemm(64, 512, 512), Precision::bf16, 1},
      {"between two", gemm(256, 512, 512), Precision::fp32,
       std::exp(w * (std::log(3) + std::log(1.5)) / (2 * w + formula))},
      {"far from all", gemm(1024 * 4096, 512, 512), Precision::fp32,
       std::exp((far * std::log(1.5) + farther * std::log(3)) / (far + farther + formula))},
      {"another kind", product(Kernel::Kind::attention, 64, 512, 512, 4), Precision::fp32, 1},
      {"a form", norm_forward(rows), Precision::fp32, 0.5},
      {"a form, in any precision of products", norm_forward(rows), Precision::bf16, 0.5},
      {"another form", norm_backward(rows), Precision::fp32, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(measured_ratio(c.kernel, device, c.precision) == Approx(c.ratio).epsilon(1e-6));
  }
}

TEST_CASE("a measured kernel takes as long as it took, as often as it runs") {
  Device device = device_preset("cpu-core");
  Kernel kernel = gemm(64, 300, 784);
  const double formula_s = kernel_time(kernel, device, Precision::fp32).seconds;
  device = measured_device({{kernel, Precision::fp32, 7e-4, formula_s}});
  kernel.count = 3;
  const KernelTime time = kernel_time(kernel, device, Precision::fp32);
  CHECK(time.one_s == Approx(7e-4));
  CHECK(time.seconds == Approx(2.1e-3));
  CHECK(time.correction == Approx(7e-4 / formula_s));
}

TEST_CASE("device files keep measured kernels") {
  const Kernel attention = product(Kernel::Kind::attention, 128, 128, 64, 4, 32);
  const MeasuredKernels kernels{{{gemm(64, 300, 784, Transposed::b), Precision::bf16, 9.5e-5, 8.25e-5},
                                 {attention, Precision::fp32, 1e-3, 2e-3},
                                 {softmax_backward({2e6, 256, 4}), Precision::fp32, 3e-4, 4e-4},
                                 {moves(2e6), Precision::fp32, 5e-4, 6e-4}},
                                "2026, a \"machine\""};
  const std::string text = measured_kernels_text(kernels);
  Document document = Document::parse_text(text, "device.toml");
  Section root = document.root();
  const auto read = read_measured_kernels(root);
  root.finish();
  REQUIRE(read);
  CHECK(measured_kernels_text(*read) == text);
  REQUIRE(read->all.size() == 4);
  CHECK(read->all[0].kernel.transposed == Transposed::b);
  CHECK(read->all[0].precision == Precision::bf16);
  CHECK(read->all[0].seconds == Approx(9.5e-5));
  CHECK(read->all[1].kernel.batch == 32);
  CHECK(read->all[2].kernel.form == MemoryForm::softmax_backward);
  CHECK(read->all[2].kernel.width == 256);
  CHECK(measured_kernels_text({}).empty());
}

TEST_CASE("measured kernels that say too little are refused") {
  struct Case {
    const char *text, *error;
  };
  const Case cases[] = {
      {"measured_kernels = [{kind = \"gemm\", m = 1, n = 1, k = 1, us = 1, formula_us = 1}]",
       "measured_kernels_source is missing"},
      {"measured_kernels_source = \"x\"\nmeasured_kernels = [{kind = \"gemm\", m = 1, n = 1, us = 1, "
       "formula_us = 1}]",
       "k is missing"},
      {"measured_kernels_source = \"x\"\nmeasured_kernels = [{kind = \"gemm\", m = 1, n = 1, k = 0, us = 1, "
       "formula_us "
       "= 1}]",
       "k is 0"},
      {"measured_kernels_source = \"x\"\nmeasured_kernels = [{kind = \"memory\", form = \"copy\", bytes = 8, "
       "us = 1, "
       "formula_us = 1}]",
       "form is"},
      {"measured_kernels_source = \"x\"\nmeasured_kernels = [{kind = \"gemm\", m = 1, n = 1, k = 1, us = 0, "
       "formula_us "
       "= 1}]",
       "us is 0"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    Document document = Document::parse_text(c.text, "device.toml");
    Section root = document.root();
    std::string found = "nothing";
    try {
      read_measured_kernels(root);
    } catch (const InputError& error) {
      found = error.what();
    }
    CAPTURE(found);
    CHECK(found.find(c.error) != std::string::npos);
  }
}

TEST_CASE("measured updates correct those of Adam, and measured copies those of other optimizers") {
  Device device = device_preset("cpu-core");
  const auto update = [&](Optimizer optimizer) {
    Work work;
    work.precision = Precision::fp32;
    work.parameters_updated = 1e5;
    work.optimizer_bytes = 1e5 * update_bytes(optimizer, Precision::fp32, Precision::fp32);
    return work;
  };
  const double adam_s = work_time_s(update(Optimizer::adam), device),
               sgd_s = work_time_s(update(Optimizer::sgd), device);
  Kernel adam = moves(update(Optimizer::adam).optimizer_bytes);
  adam.form = MemoryForm::adam_update;
  device = measured_device({{adam, Precision::fp32, 1e-4, 2e-4},
                            {moves(update(Optimizer::sgd).optimizer_bytes), Precision::fp32, 1e-4, 4e-4}});
  CHECK(work_time_s(update(Optimizer::adam), device) == Approx(adam_s / 2));
  CHECK(work_time_s(update(Optimizer::sgd), device) == Approx(sgd_s / 4));
}
