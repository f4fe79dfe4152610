// Tests what checkpoints cost, against closed forms: their bytes over the rates of copies, writers, nodes and
// storage.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;

namespace {

constexpr double kGB = 1e9;
constexpr double kCopyRate = 10 * kGB, kNic = 1 * kGB;  // bytes/s
constexpr double kClose = 1e-4;                         // the barrier's latency is left out

// Two nodes of four devices. State in mixed precision with Adam: 2 + 12 bytes per parameter.
std::string text(const std::string& strategy, const std::string& checkpoint) {
  return fmt::format(
      "[model]\npreset = \"gpt2\"\n[training]\nglobal_batch = 16\nprecision = \"bf16\"\n"
      "[cluster]\nnodes = 2\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 4\n"
      "interconnect = \"nvswitch\"\nnvlink_gb_per_s = 100\nnics = 1\nnic_gbps = 8\nnvme_write_gb_per_s = 2\n"
      "nvme_read_gb_per_s = 2\n[cluster.fabric]\nkind = \"switch\"\nlatency_us = 0\n"
      "[simulation]\nprotocol = \"ideal\"\n[strategy]\n{}\n[checkpoint]\ncopy_gb_per_s = 10\n{}\n",
      strategy, checkpoint);
}

Prediction outcome(const std::string& strategy, const std::string& checkpoint) {
  Prediction p = predict(read_scenario_text(text(strategy, checkpoint), "test.toml", {}), Where::child);
  REQUIRE(p.metrics.checkpoint);
  CHECK(p.metrics.breakdown.total_s() == Approx(p.metrics.step_time_s).epsilon(1e-9));
  CHECK(p.metrics.breakdown.checkpoint_s ==
        Approx(p.metrics.checkpoint->stall_s / p.scenario.checkpoint.every).epsilon(1e-9));
  return p;
}

constexpr const char* kDdp = "preset = \"pytorch-ddp\"";
constexpr const char* kZero1 = "preset = \"deepspeed-zero-1\"";
constexpr const char* kFsdp = "preset = \"pytorch-fsdp\"";
const std::string kShared = "storage = {kind = \"shared\", read_gb_per_s = 5, write_gb_per_s = 5}\n";

}  // namespace

TEST_CASE("checkpoints: a blocking one takes its bytes over the slowest rate") {
  struct Case {
    const char* strategy;
    std::string checkpoint;
    double total, most;                     // bytes per parameter
    std::function<double(double)> write_s;  // beside the copy; of the parameters
  };
  const std::vector<Case> cases = {
      {kDdp, "writers = \"all\"\nwriter_gb_per_s = 0\n" + kShared, 14, 14.0 / 8,
       [](double p) { return 14 * p / (5 * kGB); }},
      {kDdp, "writers = \"all\"\nwriter_gb_per_s = 0.05\n" + kShared, 14, 14.0 / 8,
       [](double p) { return 14 * p / 8 / (0.05 * kGB); }},
      {kDdp, "writers = \"holders\"\nwriter_gb_per_s = 2\n" + kShared, 14, 14,
       [](double p) { return 14 * p / (2 * kGB); }},
      {kDdp, "writers = \"first\"\nwriter_gb_per_s = 0\n" + kShared, 14, 14,
       [](double p) { return 14 * p / (5 * kGB); }},
      {kZero1, "writers = \"holders\"\nwriter_gb_per_s = 0.5\n" + kShared, 14, 2 + 12.0 / 8,
       [](double p) { return (2 + 12.0 / 8) * p / (0.5 * kGB); }},
      // The first rank gets the optimizer's state of the others over a ring that crosses the network cards.
      {kZero1, "writers = \"first\"\nwriter_gb_per_s = 2\n" + kShared, 14, 14,
       [](double p) { return 7.0 / 8 * 14 * p / kNic + 14 * p / (2 * kGB); }},
      {kFsdp, "writers = \"holders\"\nwriter_gb_per_s = 0\n" + kShared, 14, 14.0 / 8,
       [](double p) { return 14 * p / (5 * kGB); }},
      {kDdp,
       "writer_gb_per_s = 0\nstorage = {kind = \"shared\", read_gb_per_s = 5, write_gb_per_s = 5, "
       "client_gb_per_s "
       "= 0.5}\n",
       14, 14.0 / 8, [](double p) { return 14 * p / 2 / (0.5 * kGB); }},
      {kDdp, "writer_gb_per_s = 0\nstorage = {kind = \"local\", write_gb_per_s = 3}\n", 14, 14.0 / 8,
       [](double p) { return 14 * p / 2 / (3 * kGB); }},
      {kDdp, "writer_gb_per_s = 0\ntiers = [\"local\"]\n", 14, 14.0 / 8,
       [](double p) { return 14 * p / 2 / (2 * kGB); }},
      // One server on the fabric: its network card, which both nodes share, is the slowest part.
      {kDdp,
       "writer_gb_per_s = 0\nstorage = {kind = \"shared\", read_gb_per_s = 5, write_gb_per_s = 5, servers = "
       "1}\n",
       14, 14.0 / 8, [](double p) { return 14 * p / kNic; }},
      {kDdp, "tiers = [\"peer\"]\n", 14, 14.0 / 8, [](double p) { return 14 * p / 2 / kNic; }},
      {kDdp, "writer_gb_per_s = 0\ntiers = [\"peer\", \"local\", \"storage\"]\n" + kShared, 14, 14.0 / 8,
       [](double p) { return 14 * p / 2 / kNic + 14 * p / 2 / (2 * kGB) + 14 * p / (5 * kGB); }},
      {kFsdp, "bytes_per_parameter = 2\nwriter_gb_per_s = 0\n" + kShared, 2, 2.0 / 8,
       [](double p) { return 2 * p / (5 * kGB); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.strategy, c.checkpoint);
    const Prediction p = outcome(c.strategy, "every = 10\n" + c.checkpoint);
    const double parameters = parameter_count(p.scenario.model);
    CHECK(p.plan.checkpoint.total == Approx(c.total * parameters).epsilon(1e-9));
    CHECK(p.plan.checkpoint.most == Approx(c.most * parameters).epsilon(1e-9));
    const double expected_s = c.most * parameters / kCopyRate + c.write_s(parameters);
    CHECK(p.metrics.checkpoint->stall_s == Approx(expected_s).epsilon(kClose));
    CHECK(p.metrics.checkpoint->blocked_s == Approx(expected_s).epsilon(kClose));
    CHECK(p.metrics.checkpoint->written_s == Approx(expected_s).epsilon(kClose));
    CHECK(p.plan.checkpoint.copy_s + p.plan.checkpoint.least_write_s <= expected_s * (1 + kClose));
    const bool peer = p.scenario.checkpoint.tiers.front() == CheckpointTier::peer;
    CHECK(p.metrics.host_memory.has_value() == peer);
  }
}

TEST_CASE("checkpoints: an asynchronous one stops training while it is copied") {
  for (const char* strategy : {kDdp, kZero1, kFsdp})
    // Written within some steps, beside many steps, and beside fewer than lie between two checkpoints.
    for (const char* more : {"every = 1000\nwriter_gb_per_s = 0\n", "every = 1000\nwriter_gb_per_s = 0.02\n",
                             "every = 9\nwriter_gb_per_s = 0.5\n"}) {
      CAPTURE(strategy, more);
      const Prediction p = outcome(strategy, std::string("mode = \"async\"\n") + more + kShared);
      const double bytes = 14 * parameter_count(p.scenario.model), copy_s = bytes / 8 / kCopyRate,
                   rate = p.scenario.checkpoint.writer_bytes_per_s;
      const double write_s = std::max(bytes / (5 * kGB), rate > 0 ? bytes / 8 / rate : 0);
      CHECK(p.metrics.checkpoint->stall_s == Approx(copy_s).epsilon(kClose));
      CHECK(p.metrics.checkpoint->written_s == Approx(copy_s + write_s).epsilon(kClose));
      CHECK_FALSE(p.metrics.checkpoint->behind);
      REQUIRE(p.metrics.host_memory);
      CHECK(p.metrics.host_memory->total == Approx(bytes / 2).epsilon(1e-9));  // of one of two nodes
    }
}

TEST_CASE("checkpoints: one that is written more slowly than steps pass holds training back") {
  for (const int every : {1, 2, 5}) {
    CAPTURE(every);
    const Prediction p = outcome(
        kDdp, fmt::format("mode = \"async\"\nevery = {}\nwriter_gb_per_s = 0.02\n{}", every, kShared));
    const double bytes = 14 * parameter_count(p.scenario.model) / 8;
    CHECK(p.metrics.checkpoint->behind);
    CHECK(p.metrics.step_time_s * every == Approx(bytes / kCopyRate + bytes / (0.02 * kGB)).epsilon(kClose));
    CHECK(p.metrics.checkpoint->interval_s == Approx(p.metrics.step_time_s * every).epsilon(1e-9));
  }
}

TEST_CASE("checkpoints: writing over the network of the training slows it down") {
  const std::string servers =
      "writer_gb_per_s = 0\nstorage = {kind = \"shared\", read_gb_per_s = 50, write_gb_per_s = 50, servers = "
      "2}\n";
  const Prediction own = outcome(kDdp, "mode = \"async\"\nevery = 1000\n" + kShared),
                   same = outcome(kDdp, "mode = \"async\"\nevery = 1000\n" + servers);
  CHECK(same.metrics.checkpoint->stall_s > 1.05 * own.metrics.checkpoint->stall_s);
  CHECK(same.metrics.network_bytes_per_step > own.metrics.network_bytes_per_step);
  // Few steps between checkpoints are simulated, of many steps only those beside which one is written.
  const Prediction few = outcome(kDdp, "mode = \"async\"\nevery = 12\n" + servers);
  CHECK(few.metrics.checkpoint->stall_s == Approx(same.metrics.checkpoint->stall_s).epsilon(0.01));
}

TEST_CASE("checkpoints: micro-batches, pipelines and folding do not change what they cost") {
  const std::string keys = "every = 50\nwriter_gb_per_s = 0.5\n" + kShared;
  for (const char* strategy : {"data = 4\npipeline = 2", "data = 2\ntensor = 2\npipeline = 2\nzero_stage = 1",
                               "data = 8\nzero_stage = 3", "data = 4\ncontext = 2"})
    for (const char* mode : {"blocking", "async"}) {
      CAPTURE(strategy, mode);
      // Copies of different lengths change which transfers of the next steps meet on the network cards.
      const bool blocking = std::string(mode) == "blocking";
      const std::string checkpoint = (blocking ? "writers = \"holders\"\n" : "writers = \"all\"\n") + keys;
      double stall_s = -1;
      for (const char* more : {"", "simulation.fold=false", "training.global_batch=64"}) {
        CAPTURE(more);
        Overrides overrides;
        overrides.set = {std::string("checkpoint.mode=") + mode};
        if (*more != '\0') overrides.set.emplace_back(more);
        const Prediction p =
            predict(read_scenario_text(text(strategy, checkpoint), "test.toml", overrides), Where::child);
        REQUIRE(p.metrics.checkpoint);
        if (stall_s < 0) stall_s = p.metrics.checkpoint->stall_s;
        CHECK(p.metrics.checkpoint->stall_s == Approx(stall_s).epsilon(1e-6));
      }
    }
}

TEST_CASE("checkpoints: those of experts are written once by each rank that holds them") {
  // Mixtral-like: of the layers' parameters, experts are most; data-parallel ranks hold different ones.
  const std::string model =
      "[model.transformer]\nlayers = 2\nhidden = 256\nheads = 4\nvocabulary = 1000\nsequence_length = 128\n"
      "experts = 8\nexperts_per_token = 2\ndense_layers = [0]\ndense_feed_forward = 512\n";
  for (const int expert : {1, 2, 8})
    for (const char* writers : {"all", "holders", "first"}) {
      CAPTURE(expert, writers);
      std::string whole = text(fmt::format("data = 8\nexpert = {}", expert),
                               fmt::format("every = 10\nwriters = \"{}\"\n{}", writers, kShared));
      whole.replace(0, whole.find("[training]"), model);
      const Prediction p = predict(read_scenario_text(whole, "test.toml", {}), Where::child);
      CHECK(p.plan.checkpoint.total == Approx(14 * parameter_count(p.scenario.model)).epsilon(1e-6));
    }
}

TEST_CASE("checkpoints: measured ones take about as long") {
  struct Case {
    const char* what;
    const char *model, *strategy, *checkpoint;
    double measured_s, asynchronous_s;  // 0: not measured
  };
  // Sizes and the storage's rates are those that the sources give; presets are those of what wrote.
  const std::vector<Case> cases = {
      {"DLRover docs/blogs/megatron_flash_checkpoint.md: Megatron-LM, GPT-2 1.5B on 2 A100, 18 GB to a NAS",
       "gpt2-xl", "data = 2",
       "preset = \"megatron-legacy\"\nstorage.preset = \"nas\"\nbytes_per_parameter = 11.56\n", 151, 0},
      {"the same with the distributed optimizer, 24 GB", "gpt2-xl", "data = 2\nzero_stage = 1",
       "preset = \"megatron-legacy\"\nstorage.preset = \"nas\"\nbytes_per_parameter = 15.41\n", 242, 0},
      {"the same by Flash Checkpoint: each rank copies its half to host memory", "gpt2-xl",
       "data = 2\nzero_stage = 1",
       "preset = \"pytorch-dcp\"\nmode = \"async\"\nstorage.preset = \"nas\"\nbytes_per_parameter = 15.41\n",
       0, 0.5},
      {"pytorch/torchsnapshot benchmarks/ddp/README.md: torch.save of 20 GB to FSx for Lustre", "gpt2-xl",
       "data = 2",
       "preset = \"torch-save\"\nstorage = {kind = \"shared\", read_gb_per_s = 10, write_gb_per_s = 10}\n"
       "bytes_per_parameter = 12.84\n",
       38, 0},
      {"GEMINI (SOSP 2023): MT-NLG 530B to remote storage at 20 Gb/s; 12 bytes per parameter",
       "megatron-529.6b", "tensor = 8\npipeline = 35",
       "preset = \"torchsnapshot\"\nstorage = {kind = \"shared\", read_gb_per_s = 2.5, write_gb_per_s = "
       "2.5}\n"
       "bytes_per_parameter = 12\n",
       2520, 0},
  };
  std::vector<double> errors;
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const std::string whole = fmt::format(
        "model.preset = \"{}\"\ntraining.global_batch = 16\ntraining.precision = \"bf16\"\n"
        "[cluster]\npreset = \"dgx-a100\"\n{}\n[strategy]\n{}\n[checkpoint]\nevery = 1000\n{}",
        c.model, std::string(c.strategy).starts_with("tensor") ? "nodes = 35" : "devices_per_node = 2",
        c.strategy, c.checkpoint);
    const CheckpointCost cost =
        *predict(read_scenario_text(whole, "test.toml", {}), Where::child).metrics.checkpoint;
    const double error =
        c.measured_s > 0 ? cost.written_s / c.measured_s - 1 : cost.blocked_s / c.asynchronous_s - 1;
    CAPTURE(error);
    CHECK(std::abs(error) < 0.3);
    errors.push_back(std::abs(error));
  }
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 0.15);
}

TEST_CASE("checkpoints: the timeline has the steps after one, and can be read again") {
  for (const char* more : {"", "mode = \"async\"\n"}) {
    CAPTURE(more);
    const rehearse::test::Scratch scratch;
    const std::string path = scratch.path("steps.json");
    Scenario scenario = read_scenario_text(
        text("data = 4\npipeline = 2", std::string("every = 100\nwriter_gb_per_s = 0.1\n") + more + kShared),
        "test.toml", {"training.global_batch=64"});
    const Prediction p = predict(std::move(scenario), Where::child, {}, Detail::every_span);
    REQUIRE(p.checkpoint);
    write_chrome_trace(p.result(), path);
    const RecordedRun run = read_run(path);
    CHECK(run.after_checkpoint);
    const Metrics again = evaluate(run.trace, run.scenario, run.plan);
    CHECK(again.step_time_s == Approx(p.checkpoint->metrics.step_time_s).epsilon(1e-6));
    CHECK(again.breakdown.checkpoint_s == Approx(p.checkpoint->metrics.breakdown.checkpoint_s).margin(1e-6));
    const std::string json = rehearse::test::read_file(path);
    CHECK(json.find("\"checkpoint_cycle\"") != std::string::npos);
    CHECK(json.find("write checkpoint") != std::string::npos);
    // A file cannot ask for more steps than it has events of.
    for (const char* rounds : {"0", "-1", "9999", "1e300", "\"all\""}) {
      CAPTURE(rounds);
      std::string bad = json;
      const std::string key = "\"rounds\":";
      const std::size_t at = bad.find(key) + key.size();
      bad.replace(at, bad.find(',', at) - at, rounds);
      CHECK_THROWS_AS(parse_run(bad, "bad.json"), InputError);
    }
  }
}
