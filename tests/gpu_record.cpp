// Tests the GPU part of a run's record, on stand-ins for CUDA, NCCL and NVML.
#ifdef REHEARSE_HAVE_CUDA

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "backend/cuda/gpu_sampling.hpp"
#include "simulator/report/gpu_record_json.hpp"
#include "simulator/report/gpu_sentence.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;
using nlohmann::json;

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Two ranks; four steps, the first of which is warm-up.
constexpr const char* kWideRanks = R"([model.multi_layer_perceptron]
widths = [256, 512, 512, 256, 10]
[training]
global_batch = 64
micro_batch = 32
precision = "fp32"
optimizer = "adam"
[cluster]
preset = "cpu-cluster"
nodes = 2
[strategy]
data = 2
[run]
steps = 3
warmup = 1
)";

// From tests/stand_in/nvml: the GPUs on buses 1 and 2.
constexpr const char* kClocks =
    "GPU clocks: 1,910 to 1,920 MHz (SM), 1,915 on average; 403 W, 53 C on average; throttled by power cap "
    "in 3 of 3 steps.";

GpuSample sample(double time_s, double clock_mhz, std::optional<std::uint64_t> reasons = {}) {
  return {time_s, {clock_mhz, kUnknown, kUnknown, kUnknown, kUnknown}, reasons};
}

// Joins the text into one line, whatever the terminal width.
std::string unwrapped(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  for (std::string word; in >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

test::Outcome run_on_two_gpus(const std::string& arguments, const std::string& environment = "") {
  return test::run_on_stand_in("rehearse-run", "run --device gpu --patience 20 " + arguments,
                               environment + " STAND_IN_GPUS=2 LD_LIBRARY_PATH=" REHEARSE_NVML_STAND_IN
                                             "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
}

}  // namespace

TEST_CASE("samples are assigned to steps by their times") {
  struct Case {
    std::string what;
    std::vector<GpuSample> samples;
    std::vector<int> inside;  // number per step, for steps from 0 to 1 s and from 1 to 3 s
    std::vector<double> mean, least, most;
  };
  for (const Case& c : std::vector<Case>{
           {"both have some",
            {sample(0, 4), sample(0.5, 8), sample(1, 3), sample(2, 5)},
            {2, 2},
            {6, 4},
            {4, 3},
            {8, 5}},
           {"before and behind the run", {sample(-1, 4), sample(4, 8)}, {0, 0}, {4, 8}, {4, 8}, {4, 8}},
           {"the nearest one", {sample(-0.1, 4), sample(0.9, 8)}, {1, 0}, {8, 8}, {8, 8}, {8, 8}},
           {"some are not told",
            {sample(0, kUnknown), sample(0.5, 8), sample(1, 4)},
            {2, 1},
            {8, 4},
            {8, 4},
            {8, 4}},
       }) {
    CAPTURE(c.what);
    const std::vector<GpuStep> steps = sampled_steps(c.samples, {0, 1, 3});
    REQUIRE(steps.size() == 2);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CAPTURE(i);
      CHECK(steps[i].samples == c.inside[i]);
      CHECK(steps[i].sm_clock_mhz.mean == c.mean[i]);
      CHECK(steps[i].sm_clock_mhz.least == c.least[i]);
      CHECK(steps[i].sm_clock_mhz.most == c.most[i]);
      CHECK(std::isnan(steps[i].power_w.mean));
      CHECK_FALSE(steps[i].throttled_by);
    }
  }
  CHECK(sampled_steps({}, {0, 1, 3}).empty());
  // A step's reasons are those of any of its samples; an idle GPU (bit 0x1) is not throttled.
  const std::vector<GpuStep> steps =
      sampled_steps({sample(0, 1, 0x4), sample(0.5, 1, 0x21), sample(1, 1, 0x1)}, {0, 1, 3});
  CHECK(steps[0].throttled_by == std::vector<std::string>{"power cap", "software thermal slowdown"});
  CHECK(steps[1].throttled_by == std::vector<std::string>{});
}

TEST_CASE("energy of a step is what the counter gained, or power times time") {
  const auto with_counter = [](double time_s, std::optional<double> energy_j) {
    GpuSample one = sample(time_s, 1);
    one.figures[2] = 400;  // W
    one.energy_j = energy_j;
    return one;
  };
  struct Case {
    std::string what;
    std::vector<GpuSample> samples;
    EnergyBasis basis;
    std::vector<double> energy_j;  // for steps from 0 to 1 s and from 1 to 3 s
  };
  for (const Case& c : std::vector<Case>{
           {"counter",
            {with_counter(-1, 100), with_counter(0.5, 400), with_counter(2, 1000), with_counter(4, 1600)},
            EnergyBasis::counter,
            {300, 700}},
           {"counter at the bounds",
            {with_counter(0, 100), with_counter(1, 150), with_counter(3, 250)},
            EnergyBasis::counter,
            {50, 100}},
           {"no sample behind the end",
            {with_counter(0, 100), with_counter(1, 150), with_counter(2, 250)},
            EnergyBasis::counter,
            {50, kUnknown}},
           {"power", {with_counter(0, {}), with_counter(2, {})}, EnergyBasis::power, {400, 800}},
           {"neither", {sample(0, 1), sample(2, 1)}, EnergyBasis::unknown, {kUnknown, kUnknown}},
       }) {
    CAPTURE(c.what);
    std::vector<GpuStep> steps = sampled_steps(c.samples, {0, 1, 3});
    CHECK(add_energy(steps, c.samples, {0, 1, 3}) == c.basis);
    for (std::size_t i = 0; i < 2; ++i) {
      CAPTURE(i);
      if (std::isnan(c.energy_j[i]))
        CHECK(std::isnan(steps[i].energy_j));
      else
        CHECK(steps[i].energy_j == Approx(c.energy_j[i]));
    }
  }
}

TEST_CASE("energy is told in a sentence, each GPU once") {
  Measurement measurement;
  measurement.warmup_steps = 1;
  for (const char* uuid : {"GPU-1", "GPU-2", "GPU-2"}) {
    GpuRecord& rank = measurement.gpu_ranks.emplace_back();
    rank.uuid = uuid;
    rank.energy_basis = EnergyBasis::counter;
    rank.steps.resize(3);
    rank.steps[1].energy_j = 40;
    rank.steps[2].energy_j = 45;
  }
  CHECK(gpu_energy_sentence(measurement) == "GPU energy: 85.0 J a step, of 2 GPUs, by the GPUs' counters.");
  measurement.gpu_ranks.resize(1);
  measurement.gpu_ranks[0].energy_basis = EnergyBasis::power;
  CHECK(gpu_energy_sentence(measurement) == "GPU energy: 42.5 J a step, of 1 GPU, from power and time.");
  measurement.gpu_ranks[0].steps[2].energy_j = kUnknown;
  CHECK(gpu_energy_sentence(measurement).empty());
}

TEST_CASE("reasons that hold clocks down have names") {
  // NVML API Reference, "NvmlClocksEventReasons".
  using Names = std::vector<std::string>;
  CHECK(throttle_names(0).empty());
  CHECK(throttle_names(0x1).empty());
  CHECK(throttle_names(0xc0) == Names{"hardware thermal slowdown", "power brake"});
  CHECK(throttle_names(0x1402) == Names{"application clocks", "reason 0x1400"});
}

TEST_CASE("what GPUs did is told in a sentence") {
  struct Case {
    std::string expected;
    std::vector<double> clock_mhz;  // by step; the first is warm-up
    std::vector<std::optional<std::vector<std::string>>> throttled_by;
  };
  using Names = std::vector<std::string>;
  for (const Case& c : std::vector<Case>{
           {"GPU clocks: 1,980 MHz (SM) in all steps; 412 W on average; not throttled.",
            {1500, 1980, 1980},
            {Names{"power cap"}, Names{}, Names{}}},
           {"GPU clocks: 1,900 to 1,980 MHz (SM), 1,940 on average; 412 W on average; throttled by power "
            "cap in 2 of 2 steps, by sync boost in 1.",
            {1500, 1980, 1900},
            {Names{}, Names{"power cap"}, Names{"power cap", "sync boost"}}},
           {"GPU clocks: unknown; 412 W on average.", {kUnknown, kUnknown, kUnknown}, {{}, {}, {}}},
           {"", {}, {}},
       }) {
    Measurement measurement;
    measurement.warmup_steps = 1;
    GpuRecord& rank = measurement.gpu_ranks.emplace_back();
    for (std::size_t i = 0; i < c.clock_mhz.size(); ++i) {
      GpuStep& step = rank.steps.emplace_back();
      step.sm_clock_mhz = {c.clock_mhz[i], c.clock_mhz[i], c.clock_mhz[i]};
      step.power_w = {412, 400, 420};
      step.throttled_by = c.throttled_by[i];
    }
    CHECK(gpu_clocks_sentence(measurement) == c.expected);
  }
  CHECK(gpu_memory_sentence(1.25 * (1 << 30), 1.2 * (1 << 30)) ==
        "GPU memory: 1.25 GiB allocated at most, 1.20 GiB predicted (error -4.0 %).");
  CHECK(gpu_memory_sentence(3.5 * (1 << 20), 1 << 19) ==
        "GPU memory: 3.50 MiB allocated at most, 512 KiB predicted (error -85.7 %).");
}

TEST_CASE("memory of the fullest worker counts a server on its device") {
  struct Case {
    std::vector<double> allocated;  // bytes, for two workers and a server
    std::vector<int> endpoints;
    double expected = 0;
  };
  for (const Case& c : std::vector<Case>{
           {{5, 7, 20}, {0, 1, 2}, 7}, {{5, 7, 20}, {0, 1, 0}, 25}, {{5, 7, 1}, {0, 1, 0}, 7}}) {
    std::vector<GpuRecord> ranks(3);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r].allocated_bytes = c.allocated[r];
      ranks[r].predicted_bytes = 1;
    }
    CHECK(fullest_worker_bytes(ranks, c.endpoints, 2) == c.expected);
    for (GpuRecord& rank : ranks) rank.predicted_bytes = 0;  // nothing was trained
    CHECK(fullest_worker_bytes(ranks, c.endpoints, 2) == 0);
  }
}

TEST_CASE("a record says which GPUs ran, on which software, and what they did") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("two-ranks.toml", kWideRanks), trace = scratch.path("run.json");
  const test::Outcome outcome = run_on_two_gpus(scenario + " --trace " + trace, "NVML_STAND_IN_REASONS=0x5");
  INFO(outcome.out << outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK(unwrapped(outcome.out).find(kClocks) != std::string::npos);
  CHECK(outcome.out.find("GPU memory: ") != std::string::npos);

  const json measured = json::parse(test::read_file(trace))["otherData"]["measured"];
  CHECK(measured["gpus"] == 2);
  for (const char* name : {"rehearse-run", "CUDA driver", "CUDA runtime", "cuBLAS", "NCCL"}) {
    CAPTURE(name);
    CHECK(measured["versions"].value(name, "").find('.') != std::string::npos);
  }
  CHECK(measured["versions"]["NVIDIA driver"] == "550.54.15");
  const json& ranks = measured["gpu_ranks"];
  REQUIRE(ranks.size() == 2);
  for (int r = 0; r < 2; ++r) {
    CAPTURE(r);
    const std::string bus = "0" + std::to_string(r + 1);
    const std::string two = bus + bus, six = two + two + two;
    CHECK(ranks[r]["uuid"] == "GPU-" + two + two + "-" + two + "-" + two + "-" + two + "-" + six);
    CHECK(ranks[r]["pci_bus_id"] == "0000:" + bus + ":00.0");
    REQUIRE(ranks[r]["steps"].size() == 4);
    for (const json& step : ranks[r]["steps"]) {
      CHECK(step["sm_clock_mhz"]["mean"] == 1910 + 10 * r);
      CHECK(step["memory_clock_mhz"]["least"] == 2610 + 10 * r);
      CHECK(step["power_w"]["most"].get<double>() == Approx(402 + 2 * r));
      CHECK(step["temperature_c"]["mean"] == 52 + 2 * r);
      CHECK(step["utilization_percent"]["mean"] == 91 + r);
      CHECK(step["throttled_by"] == json::array({"power cap"}));
      CHECK(step["energy_j"].get<double>() > 0);
    }
    CHECK(ranks[r]["energy_basis"] == "counter");
    // The stand-in's memory holds only the rank's own arrays.
    const json& memory = ranks[r]["memory_bytes"];
    CHECK(memory["allocated"].get<double>() >= memory["used_before_communicators"].get<double>());
    CHECK(memory["used_after_communicators"] == memory["used_before_communicators"]);
    CHECK(memory["predicted"].get<double>() > 0);
  }
}

TEST_CASE("a GPU that does not tell its clocks ends no run, and a note says why") {
  const test::Scratch scratch;
  const std::string run = scratch.write("two-ranks.toml", kWideRanks) + " --format json";
  const json without = test::measured_in(run_on_two_gpus(run, "NVML_STAND_IN_FAULT=nvmlInit"));
  const std::string why = "nvmlInit failed: Not Supported";
  const json& notes = without["notes"];
  CHECK(std::count(notes.begin(), notes.end(), json("GPU clocks are unknown: " + why)) == 1);
  for (const json& rank : without["gpu_ranks"]) {
    CHECK(rank["clocks_unknown"] == why);
    CHECK(rank["steps"].empty());
    CHECK(rank["memory_bytes"]["allocated"].get<double>() > 0);
  }
  const json partly = test::measured_in(run_on_two_gpus(run, "NVML_STAND_IN_FAULT=nvmlDeviceGetPowerUsage"));
  for (const json& step : partly["gpu_ranks"][0]["steps"]) {
    CHECK(step["power_w"].is_null());
    CHECK(step["sm_clock_mhz"]["mean"] == 1910);
  }
  const json by_power =
      test::measured_in(run_on_two_gpus(run, "NVML_STAND_IN_FAULT=nvmlDeviceGetTotalEnergyConsumption"));
  CHECK(by_power["gpu_ranks"][0]["energy_basis"] == "power");
  CHECK(by_power["gpu_ranks"][0]["steps"][1]["energy_j"].get<double>() > 0);
}

TEST_CASE("validate judges the memory of a run on GPUs") {
  const test::Scratch scratch;
  const std::string scenario = scratch.write("two-ranks.toml", kWideRanks), trace = scratch.path("run.json");
  const test::Outcome recorded = run_on_two_gpus(scenario + " --trace " + trace, "NVML_STAND_IN_REASONS=0x5");
  INFO(recorded.err);
  REQUIRE(recorded.status == 0);
  const test::Outcome judged = test::run_rehearse("validate " + trace + " --format json");
  INFO(judged.err);
  REQUIRE(judged.status == 0);
  const json answer = json::parse(judged.out)[0], &run = answer["runs"][0];
  double most_allocated = 0;
  for (const json& rank : run["measured"]["gpu_ranks"])
    most_allocated = std::max(most_allocated, rank["memory_bytes"]["allocated"].get<double>());
  CHECK(run["memory_bytes"]["measured"] == most_allocated);
  const double predicted = run["memory_bytes"]["predicted"].get<double>(),
               error = run["memory_bytes"]["error"].get<double>();
  CHECK(error == Approx(predicted / most_allocated - 1));
  CHECK(std::abs(error) < 0.1);
  CHECK(answer["memory"]["runs"] == 1);
  CHECK(answer["memory"]["mean_error"] == error);
  const std::string text = unwrapped(test::run_rehearse("validate " + trace).out);
  CHECK(text.find("GPU memory: ") != std::string::npos);
  CHECK(text.find(kClocks) != std::string::npos);
  const std::string of_two = unwrapped(test::run_rehearse("validate " + trace + " " + trace).out);
  CHECK(of_two.find(" predicted error memory error ") != std::string::npos);
  CHECK(of_two.find(" Memory of 2 runs: median of absolute errors ") != std::string::npos);
  const std::string csv = test::run_rehearse("validate " + trace + " --format csv").out;
  CHECK(csv.find("," + run["memory_bytes"]["error"].dump() + "\n") != std::string::npos);
}

TEST_CASE("a rank's GPU is written and read again") {
  GpuRecord record;
  record.uuid = "GPU-1";
  record.driver = "550.54.15";
  record.allocated_bytes = 1e9;
  record.steps.resize(2);
  record.steps[1].samples = 3;
  record.steps[1].sm_clock_mhz = {1900, 1800, 1980};
  record.steps[1].throttled_by = std::vector<std::string>{"power cap"};
  record.steps[1].energy_j = 85;
  record.energy_basis = EnergyBasis::power;
  const std::string file = "record.json";
  const json written = json::parse(to_json(record).dump());
  const GpuRecord read = read_gpu_record(JsonReader(written, file));
  CHECK(to_json(read) == to_json(record));
  CHECK(read.steps[1].sm_clock_mhz.least == 1800);
  CHECK(std::isnan(read.steps[0].sm_clock_mhz.mean));
  CHECK(read.steps[1].energy_j == 85);
  CHECK(read.energy_basis == EnergyBasis::power);
  CHECK(read.predicted_bytes == 0);
}

#endif
