// Checks that each kernel's memory form (rows, width, arrays) agrees with its cost.
#include <cmath>
#include <filesystem>

#include "models/kernels.hpp"
#include "models/model.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

constexpr int kBatch = 4;

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(REHEARSE_TESTS_DIR "/../models/presets"))
    if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
  return names;
}

template <class With>
void for_kernels(Precision precision, With with) {
  PassShape pass;
  pass.micro_batch = kBatch;
  pass.precision = precision;
  for (const std::string& name : preset_names()) {
    INFO(name);
    const Model model = model_preset(name);
    std::string last;
    for (const LayerCost& layer : layer_costs(model, pass)) {
      INFO(layer.name);
      for (const auto& kernels : {layer.forward, layer.backward_input, layer.backward_weight})
        for (const Kernel& kernel : kernels) with(kernel);
    }
  }
}

struct FormArrays {
  MemoryForm form;
  float reads, writes;
  bool planes;
};
constexpr FormArrays kForms[] = {
    {MemoryForm::norm_forward, 1, 1, false},     {MemoryForm::norm_backward, 2, 1, false},
    {MemoryForm::norm_parameters, 2, 0, false},  {MemoryForm::softmax_forward, 1, 1, false},
    {MemoryForm::softmax_backward, 2, 1, false}, {MemoryForm::column_sums, 1, 0, false},
    {MemoryForm::channel_sums, 1, 0, true},      {MemoryForm::batch_norm_forward, 2, 1, true},
    {MemoryForm::batch_norm_sums, 2, 0, true},   {MemoryForm::batch_norm_backward, 2, 1, true},
};

double whole_part(double number) {
  return std::abs(number - std::round(number));
}

}  // namespace

TEST_CASE("the bytes of kernels with rows are those of their arrays") {
  for (const Precision precision : {Precision::bf16, Precision::fp32}) {
    std::size_t met = 0, wrong = 0;
    for_kernels(precision, [&](const Kernel& kernel) {
      for (const FormArrays& f : kForms) {
        if (kernel.kind != Kernel::Kind::memory || kernel.form != f.form) continue;
        ++met;
        const bool whole = whole_part(kernel.rows()) < 1e-6 && whole_part(kernel.width) == 0 &&
                           kernel.rows() >= 1 && kernel.width >= 1;
        const bool channels =
            !f.planes ? kernel.channels == 0
                      : kernel.channels > 0 && whole_part(kernel.rows() / kBatch / kernel.channels) < 1e-6;
        const bool arrays = kernel.reads == f.reads && kernel.writes == f.writes;
        // The router's probabilities are fp32 in every precision.
        const bool element = kernel.element == element_bytes(precision) || kernel.element == 4;
        const double bytes = static_cast<double>((kernel.reads + kernel.writes) * kernel.element) *
                             std::round(kernel.rows()) * kernel.width;
        if (!whole || !channels || !arrays || !element || std::abs(bytes - kernel.bytes) > 1) ++wrong;
      }
    });
    CHECK(met > 1000);
    CHECK(wrong == 0);
  }
}

TEST_CASE("kernels without rows read and write some of the arrays that they count") {
  for_kernels(Precision::bf16, [&](const Kernel& kernel) {
    if (kernel.kind != Kernel::Kind::memory || has_rows(kernel.form)) return;
    if (kernel.reads >= 1 && kernel.writes >= 1 && kernel.reads + kernel.writes <= 100 && kernel.width == 0)
      return;
    CAPTURE(kernel.reads, kernel.writes, kernel.bytes);
    CHECK(false);
  });
}

TEST_CASE("rows of a transformer's kernels are its tokens, its heads' and its scores'") {
  const Model model = model_preset("gpt2");  // 768 wide, 12 heads, 1,024 tokens
  PassShape pass;
  pass.micro_batch = 2;
  const LayerCost layer = layer_costs(model, pass)[1];
  struct Case {
    MemoryForm form;
    double rows, width;
    std::size_t count;
  };
  const double tokens = 2048;
  for (const Case& c :
       {Case{MemoryForm::norm_forward, tokens, 768, 2}, Case{MemoryForm::norm_backward, tokens, 768, 2},
        Case{MemoryForm::norm_parameters, tokens, 768, 2},
        Case{MemoryForm::softmax_forward, 12 * tokens, 1024, 1},
        Case{MemoryForm::softmax_backward, 12 * tokens, 1024, 1},
        Case{MemoryForm::column_sums, tokens, 768, 2},  // biases of both projections
        Case{MemoryForm::column_sums, tokens, 3 * 768, 1},
        Case{MemoryForm::column_sums, tokens, 4 * 768, 1}}) {
    CAPTURE(static_cast<int>(c.form), c.width);
    std::size_t found = 0;
    for (const auto& kernels : {layer.forward, layer.backward_input, layer.backward_weight})
      for (const Kernel& kernel : kernels)
        found += kernel.form == c.form && kernel.rows() == c.rows && kernel.width == c.width ? 1 : 0;
    CHECK(found == c.count);
  }
}

TEST_CASE("a convolution's geometry is that of its product") {
  std::size_t met = 0, wrong = 0;
  for_kernels(Precision::bf16, [&](const Kernel& kernel) {
    if (kernel.kind != Kernel::Kind::convolution) return;
    ++met;
    const ConvolutionShape& s = kernel.convolution;
    const double window = s.kernel_height * s.kernel_width;
    const double in = s.samples * s.height * s.width, out = s.samples * s.out_height() * s.out_width();
    const auto is = [&](double m, double n, double k) {
      return kernel.m == m && kernel.n == n && std::abs(kernel.k - k) < 1e-6 * k;
    };
    bool fits = false;
    switch (s.pass) {
      case ConvolutionShape::Pass::forward:
        fits = is(out, s.out_channels, s.in_channels * window);
        break;
      case ConvolutionShape::Pass::backward_input:
        fits = is(in, s.in_channels, s.out_channels * window * out / in);
        break;
      case ConvolutionShape::Pass::backward_weight:
        fits = is(s.out_channels, s.in_channels * window, out);
        break;
    }
    const double elements =
        in * s.in_channels + out * s.out_channels + window * s.in_channels * s.out_channels;
    if (!fits || kernel.bytes != 2 * elements) ++wrong;
  });
  CHECK(met > 500);
  CHECK(wrong == 0);
}
