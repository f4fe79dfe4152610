// Checks what the keys of a framework add to the memory of a device, against the number of tensors' elements.
#include <fmt/format.h>

#include "tests/memory_run.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kTokens = 2 * 512, kHidden = 1024, kInner = 4096, kVocabulary = 32000, kLayers = 8;

// A gated transformer without biases on A100s; `framework` has lines of [framework].
Prediction run_of(const std::string& framework, const std::string& strategy, int global_batch,
                  int devices = 2) {
  const std::string model =
      "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nfeed_forward = 4096\ngated = true\n"
      "vocabulary = 32000\nsequence_length = 512\npositions = 0\nbiases = false\ndropout = false\n"
      "[framework]\n" +
      framework;
  return predicted(scenario_of(
      model, fmt::format("micro_batch = 2\nglobal_batch = {}\nattention = \"flash-2\"\n", global_batch),
      strategy, fmt::format("preset = \"dgx-a100\"\nnodes = 1\ndevices_per_node = {}\n", devices)));
}

MemoryPeak peak(const std::string& framework, const std::string& strategy, int global_batch) {
  return memory_peaks(run_of(framework, strategy, global_batch).trace, 0).front();
}

std::string bytes(const char* key, double value) {
  return fmt::format("{} = {{value = {}, basis = \"guess\", source = \"a test\"}}\n", key, value);
}

// Elements on each of two data-parallel ranks, with a tied table.
constexpr double kParameters =
    kVocabulary * kHidden + kLayers * (4 * kHidden * kHidden + 3 * kHidden * kInner + 2 * kHidden) + kHidden;

}  // namespace

TEST_CASE("a framework's tensors beside those of fused kernels") {
  struct Case {
    std::string framework;
    double more;  // bytes at the peak, beside a framework without the key
  };
  const std::string ddp = "data = 2\n";
  const double plain = peak("", ddp, 4).total;
  for (const Case& c : std::vector<Case>{
           // 6 bytes a logit without the key: logits in 16 bits and the softmax in fp32.
           {bytes("loss_peak_bytes_per_logit", 12), (12 - 6) * kTokens * kVocabulary},
           {bytes("loss_peak_bytes_per_logit", 2), (2 - 6) * kTokens * kVocabulary},
           // Two norms a layer; the final norm's result is saved by the product behind it.
           {bytes("norm_saved_bytes_per_element", 8), 2 * kLayers * (8 - 4) * kTokens * kHidden},
           {bytes("gate_saved_bytes_per_element", 8), kLayers * (8 - 6) * kTokens * kInner},
           {"packed_queries = true\n", kLayers * 2 * kTokens * 2 * kHidden},
           // In the buckets of DistributedDataParallel all the time.
           {bytes("gradient_copy_bytes_per_parameter", 2), 2 * kParameters},
           {bytes("bucket_buffers_gib", 0.125), 0.125 * 1073741824},
           {bytes("bucket_buffers_gib", 100), 2 * kParameters}}) {
    CAPTURE(c.framework);
    // Without copies of the logits, the gradients inside a layer are the most of a backward pass.
    CHECK(peak(c.framework, ddp, 4).total - plain == Approx(c.more).epsilon(0.02));
  }
}

TEST_CASE("gradients in 16 bits beside their sums are gone after each pass, without data parallelism") {
  // They grow as activations are given free, and are more than these here.
  const std::string alone = "tensor = 2\n";
  const double plain = peak("", alone, 2).total,
               copied = peak(bytes("gradient_copy_bytes_per_parameter", 2), alone, 2).total;
  CHECK(copied >= plain);
  CHECK(copied - plain < 2 * kParameters / 2);
}

TEST_CASE("the update needs the weights, gradients and optimizer state, and copies that it gathers") {
  const std::string zero = "data = 2\nzero_stage = 1\nprefetch = 0\n";
  const MemoryPeak plain = peak("", zero, 4), copied = peak("gather_copies = true\n", zero, 4);
  // 2 + 2 + 12 / 2 bytes a parameter.
  CHECK(plain.update == Approx(10 * kParameters).epsilon(0.001));
  CHECK(plain.update < plain.total);
  // All weights and the rank's own half of them, in 16 bits.
  CHECK(copied.update - plain.update == Approx(1.5 * 2 * kParameters).epsilon(0.001));
}

TEST_CASE("buffers that tensor ranks gather into stay allocated") {
  const std::string tensor = "tensor = 2\nsequence_parallel = true\n";
  const MemoryPeak plain = peak("", tensor, 2), held = peak("held_gather_buffers = true\n", tensor, 2);
  // One for inputs and one for gradients, of all tokens.
  CHECK(held.update - plain.update == Approx(2 * 2 * kTokens * kHidden).epsilon(0.01));
}

TEST_CASE("host memory of offloaded state counts pinned copies and buffers") {
  const std::string offload = "data = 2\nzero_stage = 2\noffload = \"cpu\"\n";
  const HostMemoryUse plain = *run_of("", offload, 4).metrics.host_memory,
                      more = *run_of(bytes("host_memory_factor", 1.5), offload, 4).metrics.host_memory;
  CHECK(more.total == Approx(1.5 * plain.total));
  CHECK(more.optimizer == plain.optimizer);
  CHECK(more.buffers - plain.buffers == Approx(0.5 * plain.total));
}

TEST_CASE("with a pipeline, ranks that shard weights can sum gradients whole") {
  const std::string shards = "data = 2\npipeline = 2\nfsdp = \"full\"\nstage_layers = [5, 5]\n";
  const auto update = [&](const std::string& framework) {
    return memory_peaks(run_of(framework, shards, 8, 4).trace, 0).front().update;
  };
  // The first of two stages with half of the layers and the table, in 16 bits.
  const double parameters =
      kVocabulary * kHidden + kLayers / 2 * (4 * kHidden * kHidden + 3 * kHidden * kInner + 2 * kHidden);
  CHECK(update("whole_gradients = true\n") - update("") == Approx(2 * parameters).epsilon(0.001));
}
