// Memory of the fullest device as others measured it, and as it is predicted. Nothing in the models is tuned
// to these rows: the bounds below are the errors found when they were entered, rounded up, so that a change
// that predicts memory worse is seen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/memory_run.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kGb = 1e9, kGib = 1073741824.0;

struct Row {
  std::string name, model, training, strategy, cluster;
  double measured;  // bytes
};

// Qi et al., "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241), tables 3 (models) and 4 (peak memory, the
// maximum over stages): 16-bit Megatron-LM with unfused attention on A100-80GB. Of ZB-1p and ZB-2p the orders
// drawn by hand, which keep as many activations. First and last stage hold a layer less than the others; with
// interleaving each chunk is one layer.
std::vector<Row> zero_bubble() {
  struct Size {
    const char* name;
    GptShape gpt;
    int micro_batch, stages, microbatches;
  };
  const std::vector<Size> sizes = {{"1.5B", {22, 2304, 24, 1024, 50304}, 6, 8, 64},
                                   {"6.2B", {30, 4096, 32, 1024, 50304}, 3, 8, 64},
                                   {"14.6B", {46, 5120, 40, 1024, 50304}, 1, 16, 128},
                                   {"28.3B", {62, 6144, 48, 1024, 50304}, 1, 32, 128}};
  struct Schedule {
    const char* name;
    double gigabytes[4];
  };
  const Schedule schedules[] = {{"1f1b", {30, 39, 32, 43}},
                                {"interleaved", {40, 48, 39, 58}},
                                {"zb-h1", {32, 42, 33, 44}},
                                {"zb-h2", {59, 70, 51, 74}}};
  std::vector<Row> rows;
  for (const Schedule& schedule : schedules)
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Size& size = sizes[i];
      const std::string name = schedule.name;
      const int layers = size.gpt.layers + 2, parts = name == "interleaved" ? layers : size.stages;
      std::string cut;
      for (int part = 0; part < parts; ++part)
        cut += fmt::format("{}{}", part > 0 ? ", " : "", layers / parts);
      rows.push_back(
          {fmt::format("Zero Bubble, {}, {}", size.name, name), gpt_text(size.gpt),
           fmt::format("micro_batch = {}\nglobal_batch = {}\n", size.micro_batch,
                       size.micro_batch * size.microbatches),
           fmt::format("data = 1\npipeline = {}\nschedule = \"{}\"\nstage_layers = [{}]\n{}", size.stages,
                       name, cut,
                       parts > size.stages ? fmt::format("virtual_stages = {}\n", parts / size.stages) : ""),
           fmt::format("preset = \"dgx-a100\"\nnodes = {}\n", size.stages / 8), schedule.gigabytes[i] * kGb});
    }
  return rows;
}

// BigScience, chronicles of the 176B model (train/tr11-176B-ml/chronicles-prequel.md of bigscience-workshop),
// "Best TFLOPs": Megatron-DeepSpeed, 80 layers of 14400, micro-batch 1, all layers recomputed, as nvidia-smi
// tells it.
std::vector<Row> bigscience() {
  const std::string model = gpt_text({80, 14400, 96, 2048, 51200});
  return {{"BigScience 200B, fp16, ZeRO-1", model,
           "micro_batch = 1\nglobal_batch = 512\nprecision = \"fp16\"\nrecompute = \"full\"\n",
           "data = 2\ntensor = 8\npipeline = 10\nzero_stage = 1\n", "preset = \"dgx-a100\"\nnodes = 20\n",
           51 * kGib},
          {"BigScience 200B, bf16", model,
           "micro_batch = 1\nglobal_batch = 512\nprecision = \"bf16\"\ngradient_precision = "
           "\"fp32\"\nrecompute = \"full\"\n",
           "data = 1\ntensor = 8\npipeline = 10\n", "preset = \"dgx-a100\"\nnodes = 10\n", 75 * kGib}};
}

struct Errors {
  double median = 0, worst = 0;  // of their absolute values
};

Errors errors_of(const std::vector<Row>& rows) {
  std::vector<double> errors;
  for (const Row& row : rows) {
    const MemoryUse use =
        predicted(scenario_of(row.model, row.training, row.strategy, row.cluster)).metrics.memory;
    errors.push_back(std::abs(use.total / row.measured - 1));
    INFO(fmt::format("{}: {:.1f} GB measured, {:.1f} GB predicted", row.name, row.measured / kGb,
                     use.total / kGb));
    CHECK(use.fits);  // it ran
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back()};
}

}  // namespace

TEST_CASE("memory of pipelines with and without split backward passes, as published") {
  // Found: median 1.6 %, worst 7.0 % (1.5B with zb-h2, which keeps 2 p - 1 micro-batches where ZB-2p keeps 2
  // p).
  const Errors errors = errors_of(zero_bubble());
  CAPTURE(errors.median, errors.worst);
  CHECK(errors.median < 0.02);
  CHECK(errors.worst < 0.08);
}

TEST_CASE("memory of a 200B model, as published") {
  // Found: 34 % and 42 % too little. What the process holds besides its tensors is not modelled: DeepSpeed's
  // flattened copies, what the allocator keeps, CUDA's and NCCL's own memory.
  const Errors errors = errors_of(bigscience());
  CAPTURE(errors.median, errors.worst);
  CHECK(errors.worst < 0.45);
}
