// Compares published measurements of the memory of the fullest device with predictions. Nothing in the models
// is tuned to these rows: the bounds below are the errors at the time the rows were entered, rounded up, so
// that a change that makes the prediction worse is noticed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/strategy.hpp"
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
// maximum over stages): 16-bit Megatron-LM with unfused attention on A100-80GB. For ZB-1p and ZB-2p, the rows
// use the handcrafted schedules, which store as many activations. The first and the last stage hold one layer
// less than the others; with interleaving each model chunk is one layer.
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
           fmt::format("micro_batch = {}\nglobal_batch = {}\nattention = \"unfused\"\n", size.micro_batch,
                       size.micro_batch * size.microbatches),
           fmt::format("data = 1\npipeline = {}\nschedule = \"{}\"\nstage_layers = [{}]\n{}", size.stages,
                       name, cut,
                       parts > size.stages ? fmt::format("virtual_stages = {}\n", parts / size.stages) : ""),
           fmt::format("preset = \"dgx-a100\"\nnodes = {}\n", size.stages / 8), schedule.gigabytes[i] * kGb});
    }
  return rows;
}

// BigScience, chronicles of the 176B model (train/tr11-176B-ml/chronicles-prequel.md of bigscience-workshop),
// "Best TFLOPs": Megatron-DeepSpeed, 80 layers of 14400, micro-batch 1, all layers recomputed; memory as
// reported by nvidia-smi.
std::vector<Row> bigscience() {
  const std::string model = gpt_text({80, 14400, 96, 2048, 51200});
  return {{"BigScience 200B, fp16, ZeRO-1", model,
           "micro_batch = 1\nglobal_batch = 512\nprecision = \"fp16\"\nattention = \"unfused\"\nrecompute = "
           "\"full\"\n",
           "data = 2\ntensor = 8\npipeline = 10\nzero_stage = 1\n", "preset = \"dgx-a100\"\nnodes = 20\n",
           51 * kGib},
          {"BigScience 200B, bf16", model,
           "micro_batch = 1\nglobal_batch = 512\nprecision = \"bf16\"\ngradient_precision = "
           "\"fp32\"\nattention = \"unfused\"\nrecompute = \"full\"\n",
           "data = 1\ntensor = 8\npipeline = 10\n", "preset = \"dgx-a100\"\nnodes = 10\n", 75 * kGib}};
}

// MosaicML's tables of LLM Foundry (mosaicml/llm-foundry, scripts/train/benchmarking/README.md): MPT models
// on 2048 tokens, mixed bf16, FSDP with full sharding, all layers recomputed. The tables show only that these
// runs fit in memory.
std::vector<Row> that_ran() {
  struct Run {
    const char* name;
    int layers, hidden, heads, devices, micro_batch;
    const char* cluster;
  };
  std::vector<Row> rows;
  for (const Run& run :
       {Run{"70B", 80, 8192, 64, 256, 8, "dgx-h100"}, Run{"70B", 80, 8192, 64, 64, 8, "dgx-h100"},
        Run{"30B", 48, 7168, 56, 256, 8, "dgx-h100"}, Run{"30B", 48, 7168, 56, 16, 10, "dgx-h100"},
        Run{"30B", 48, 7168, 56, 8, 3, "dgx-h100"}, Run{"30B", 48, 7168, 56, 8, 3, "dgx-a100"},
        Run{"13B", 40, 5120, 40, 512, 16, "dgx-h100"}})
    rows.push_back(
        {fmt::format("MPT {} on {} of {}, micro-batch {}", run.name, run.devices, run.cluster,
                     run.micro_batch),
         fmt::format("[model.transformer]\nlayers = {}\nhidden = {}\nheads = {}\nvocabulary = 50368\n"
                     "sequence_length = 2048\npositions = 0\nbiases = false\ndropout = false\n",
                     run.layers, run.hidden, run.heads),
         fmt::format("micro_batch = {}\nglobal_batch = {}\nrecompute = \"full\"\n", run.micro_batch,
                     run.micro_batch * run.devices),
         fmt::format("data = {}\nfsdp = \"full\"\n", run.devices),
         fmt::format("preset = \"{}\"\nnodes = {}\n", run.cluster, run.devices / 8), 80 * kGib});
  return rows;
}

struct Errors {
  double median = 0, worst = 0;  // of the absolute errors
};

Errors errors_of(const std::vector<Row>& rows) {
  std::vector<double> errors;
  for (const Row& row : rows) {
    const Prediction run = predicted(scenario_of(row.model, row.training, row.strategy, row.cluster));
    const MemoryUse& use = run.metrics.memory;
    errors.push_back(std::abs(use.total / row.measured - 1));
    INFO(fmt::format("{}: {:.1f} GB measured, {:.1f} GB predicted", row.name, row.measured / kGb,
                     use.total / kGb));
    CHECK(use.fits);  // it ran
    // peak_worker_bytes() follows the order of the programs and leaves out the buffers of overlapping
    // transfers.
    CHECK(peak_worker_bytes(*run.plan.schedule) == Approx(use.total).epsilon(0.01));
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back()};
}

}  // namespace

TEST_CASE("memory of pipelines with and without split backward passes, as published", "[release]") {
  // Found: median 1.6 %, worst 7.0 % (1.5B with zb-h2, which stores 2 p - 1 micro-batches where ZB-2p stores
  // 2 p).
  const Errors errors = errors_of(zero_bubble());
  CAPTURE(errors.median, errors.worst);
  CHECK(errors.median < 0.02);
  CHECK(errors.worst < 0.08);
}

TEST_CASE("memory of a 200B model, as published", "[release]") {
  // Found: 34 % and 42 % too little. The model leaves out what the process holds besides its tensors:
  // DeepSpeed's flattened copies, the allocator's cache, CUDA's and NCCL's own memory.
  const Errors errors = errors_of(bigscience());
  CAPTURE(errors.median, errors.worst);
  CHECK(errors.worst < 0.45);
}

TEST_CASE("what ran fits into memory") {
  for (const Row& row : that_ran()) {
    const Scenario scenario = scenario_of(row.model, row.training, row.strategy, row.cluster);
    const double bytes = peak_worker_bytes(*write_schedule(scenario).schedule);
    INFO(fmt::format("{}: {:.1f} GiB predicted", row.name, bytes / kGib));
    CHECK(bytes < row.measured);
    CHECK(bytes > 0.2 * row.measured);
  }
}

TEST_CASE("model states of ZeRO's table") {
  // Rajbhandari et al. 2020, table 1: GB per device for 7.5, 128 and 1000 billion parameters with
  // mixed-precision Adam, by degree of data parallelism and ZeRO stage.
  struct Published {
    int ranks;
    double gigabytes[3][3];  // by model, by ZeRO stage
  };
  const Published table[] = {
      {4, {{52.5, 41.3, 30}, {896, 704, 512}, {7000, 5500, 4000}}},
      {16, {{35.6, 21.6, 7.5}, {608, 368, 128}, {4750, 2875, 1000}}},
      {64, {{31.4, 16.6, 1.88}, {536, 284, 32}, {4187, 2218, 250}}},
      {256, {{30.4, 15.4, 0.47}, {518, 263, 8}, {4046, 2054, 62.5}}},
      {1024, {{30.1, 15.1, 0.12}, {513, 257, 2}, {4011, 2013, 15.6}}},
  };
  const double billions[] = {7.5, 128, 1000};
  for (const Published& row : table)
    for (int stage = 1; stage <= 3; ++stage) {
      CAPTURE(row.ranks, stage);
      const Scenario scenario =
          scenario_of(gpt_text({}), fmt::format("global_batch = {}\n", row.ranks),
                      fmt::format("data = {}\nzero_stage = {}\n", row.ranks, stage),
                      fmt::format("preset = \"dgx-a100\"\nnodes = {}\ndevices_per_node = {}\n",
                                  std::max(1, row.ranks / 8), std::min(8, row.ranks)));
      const Plan plan = write_schedule(scenario);
      double held = 0;
      for (const Tensor& tensor : plan.schedule->programs.front().tensors)
        if (tensor.persistent()) held += tensor.bytes.base;
      const double each = held / parameter_count(scenario.model);
      for (int model = 0; model < 3; ++model) {
        const double published = row.gigabytes[model][stage - 1];
        CAPTURE(billions[model]);
        CHECK(each * billions[model] == Approx(published).epsilon(0.01).margin(0.06));
      }
    }
}
