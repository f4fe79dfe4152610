// Tests the tensors at the peak against the memory of the result, and the snapshot of a step's allocations.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "simulator/report/memory_snapshot.hpp"
#include "simulator/report/peak_tensors.hpp"
#include "simulator/trace/tensor_rows.hpp"
#include "tests/memory_run.hpp"
#include "tests/unpickle.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

struct Planned {
  std::string name;
  Scenario scenario;
};

// Shipped scenarios, and strategies that none of them has.
std::vector<Planned> planned() {
  std::vector<Planned> all;
  const std::filesystem::path folder = std::string(REHEARSE_TESTS_DIR) + "/../simulator/scenarios";
  for (const auto& file : std::filesystem::directory_iterator(folder))
    all.push_back({file.path().stem().string(), read_scenario_file(file.path().string(), {})});
  const auto gpt = [&](const std::string& name, const std::string& strategy, const std::string& training) {
    all.push_back({name, scenario_of(gpt_text({}), "global_batch = 64\nmicro_batch = 1\n" + training,
                                     strategy, "preset = \"dgx-a100\"\n")});
  };
  gpt("gpipe", "pipeline = 4\ndata = 2\nschedule = \"gpipe\"\n", "");
  gpt("zb-h1", "pipeline = 4\ndata = 2\nschedule = \"zb-h1\"\n", "");
  gpt("zb-v", "pipeline = 4\ndata = 2\nschedule = \"zb-v\"\nvirtual_stages = 2\n", "");
  gpt("interleaved", "pipeline = 4\ndata = 2\nschedule = \"interleaved\"\nvirtual_stages = 2\n", "");
  gpt("zero 3", "data = 8\nzero_stage = 3\n", "");
  gpt("full recomputation", "tensor = 2\ndata = 4\n", "recompute = \"full\"\n");
  gpt("delayed", "data = 8\ngradients = \"delayed-all-reduce\"\n", "");
  return all;
}

std::string long_steps() {
  return "global_batch = 2048\nmicro_batch = 1\n";
}

}  // namespace

TEST_CASE("tensors at the peak add up to the memory of the result") {
  for (const Planned& p : planned()) {
    CAPTURE(p.name);
    const Prediction prediction = predicted(p.scenario);
    const std::vector<MemoryMoment> device = fullest_device(prediction.trace, 0);
    REQUIRE_FALSE(device.empty());
    double bytes = 0, in_rows = 0, in_ten = 0;
    for (const MemoryMoment& moment : device) {
      bytes += moment.bytes;
      double sum = 0;
      for (const LiveTensor& one : moment.tensors) {
        sum += one.bytes;
        CHECK(one.born_s < one.freed_s);
        CHECK(one.born_s <= moment.time_s);
        CHECK(moment.time_s <= one.freed_s + 1e-9);
        CHECK(one.persistent == (one.born_in < 0 && one.freed_in < 0));
      }
      CHECK(sum == Approx(moment.bytes));
      CHECK(moment.op >= 0);
    }
    CHECK(bytes == Approx(prediction.metrics.memory.total).epsilon(1e-12));
    const std::vector<TensorRow> rows = tensor_rows(prediction.trace, device);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      in_rows += rows[i].bytes;
      if (i < 10) in_ten += rows[i].bytes;
      if (i > 0) CHECK(rows[i].bytes <= rows[i - 1].bytes);
    }
    CHECK(in_rows == Approx(bytes));
    CHECK(in_ten > 0.8 * bytes);
  }
}

TEST_CASE("the peak of a few micro-batches has the bytes of the whole step's") {
  for (const char* const strategy :
       {"pipeline = 4\ndata = 2\n",
        "pipeline = 4\ndata = 2\nschedule = \"interleaved\"\nvirtual_stages = 2\n"}) {
    CAPTURE(strategy);
    const Scenario scenario = scenario_of(gpt_text({}), long_steps(), strategy, "preset = \"dgx-a100\"\n");
    const Prediction few = predicted(scenario),
                     whole = predict(scenario, Where::child, {}, Detail::every_span);
    REQUIRE(few.rounds);
    REQUIRE_FALSE(whole.rounds);
    const std::vector<MemoryMoment> of_few = fullest_device(few.trace, 0),
                                    of_whole = fullest_device(whole.trace, 0);
    REQUIRE(of_few.size() == of_whole.size());
    CHECK(of_few.front().bytes == Approx(few.metrics.memory.total).epsilon(1e-12));
    CHECK(of_whole.front().bytes == Approx(few.metrics.memory.total).epsilon(1e-12));
  }
}

TEST_CASE("folded ranks hold what each rank of its own does") {
  Scenario scenario = scenario_of(gpt_text({}), "global_batch = 32\nmicro_batch = 1\n",
                                  "pipeline = 2\ndata = 2\ntensor = 2\n", "preset = \"dgx-a100\"\n");
  const Prediction folded = predicted(scenario);
  scenario.engine.fold = false;
  const Prediction whole = predicted(scenario);
  REQUIRE(folded.trace.classes.size() < whole.trace.classes.size());
  const std::vector<TensorRow> a = tensor_rows(folded.trace, fullest_device(folded.trace, 0)),
                               b = tensor_rows(whole.trace, fullest_device(whole.trace, 0));
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].name == b[i].name);
    CHECK(a[i].bytes == Approx(b[i].bytes));
    CHECK(a[i].born_s == Approx(b[i].born_s).margin(1e-9));
    CHECK(a[i].freed_s == Approx(b[i].freed_s));
  }
}

TEST_CASE("a snapshot replays to the peak, and its live blocks do not overlap") {
  for (const Planned& p : planned()) {
    CAPTURE(p.name);
    const Prediction prediction = predicted(p.scenario);
    const MemoryPeak fullest = fullest_worker(memory_peaks(prediction.trace, 0));
    const double own_peak = peak_moment(prediction.trace, fullest.rank_class, fullest.step).bytes;
    const nlohmann::json snapshot = rehearse::test::unpickle(memory_snapshot(prediction.trace, 0));
    REQUIRE(snapshot["device_traces"].size() == 1);
    REQUIRE(snapshot["segments"].size() == 1);
    const nlohmann::json& segment = snapshot["segments"][0];
    const auto first = segment["address"].get<std::int64_t>(),
               end = first + segment["total_size"].get<std::int64_t>();
    std::map<std::int64_t, std::int64_t> live;  // bytes by address
    double now = 0;
    std::int64_t next = first;
    for (const nlohmann::json& block : segment["blocks"]) {  // they fill the segment without gaps
      CHECK(block["address"] == next);
      next += block["size"].get<std::int64_t>();
      if (block["state"] == "inactive") continue;
      CHECK(block["state"] == "active_allocated");
      live[block["address"].get<std::int64_t>()] = block["requested_size"].get<std::int64_t>();
      now += block["requested_size"].get<double>();
      CHECK(block["requested_size"] <= block["size"]);
      CHECK_FALSE(block["frames"].empty());
    }
    CHECK(next == end);
    const nlohmann::json& trace = snapshot["device_traces"][0];
    // What is freed without having been allocated was there before.
    std::map<std::int64_t, bool> seen;
    for (const nlohmann::json& entry : trace) {
      const auto address = entry["addr"].get<std::int64_t>();
      if (entry["action"] == "free_requested") continue;
      if (entry["action"] == "free_completed" && !seen[address]) {
        live[address] = entry["size"].get<std::int64_t>();
        now += entry["size"].get<double>();
      }
      seen[address] = true;
    }
    double most = now;
    std::int64_t last_us = 0;
    bool overlap = false;
    for (const nlohmann::json& entry : trace) {
      const auto address = entry["addr"].get<std::int64_t>(), bytes = entry["size"].get<std::int64_t>();
      CHECK(entry["time_us"] >= last_us);
      last_us = entry["time_us"].get<std::int64_t>();
      if (entry["action"] == "alloc") {
        const auto above = live.lower_bound(address);
        if (above != live.end()) overlap = overlap || address + bytes > above->first;
        if (above != live.begin())
          overlap = overlap || std::prev(above)->first + std::prev(above)->second > address;
        overlap = overlap || address < first || address + bytes > end;
        live[address] = bytes;
        now += static_cast<double>(bytes);
      } else if (entry["action"] == "free_completed") {
        REQUIRE(live.count(address) == 1);
        CHECK(live[address] == bytes);
        live.erase(address);
        now -= static_cast<double>(bytes);
      }
      most = std::max(most, now);
    }
    CHECK_FALSE(overlap);
    CHECK(most == Approx(own_peak).epsilon(1e-6));  // each tensor's bytes are rounded
    CHECK(live.size() + static_cast<std::size_t>(
                            std::count_if(segment["blocks"].begin(), segment["blocks"].end(),
                                          [](const auto& block) { return block["state"] == "inactive"; })) ==
          segment["blocks"].size());
  }
}

TEST_CASE("a model without known memory has no tensors") {
  const Scenario scenario = read_scenario_text(
      "[model.profiled]\nstages = 1\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = 8\n"
      "p2p_bytes = 0\n[training]\nglobal_batch = 2\n[cluster]\npreset = \"dgx-a100\"\nnodes = 1\n"
      "devices_per_node = 1\n",
      "profiled.toml");
  const Prediction prediction = predicted(scenario);
  CHECK(fullest_device(prediction.trace, 0).empty());
  CHECK(peak_tensors_json(prediction.result()).is_null());
  const nlohmann::json snapshot = rehearse::test::unpickle(memory_snapshot(prediction.trace, 0));
  CHECK(snapshot["segments"].empty());
  CHECK(snapshot["device_traces"][0].empty());
}
