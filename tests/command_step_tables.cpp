// Pins the errors of the shipped tables of step times, so that a change that moves a prediction is noticed at
// once. The figures are what the constants give today, not a target.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse::test;
using nlohmann::json;

namespace {

struct Pinned {
  const char* table;
  std::size_t rows;
  double mean_absolute, mean;  // of the relative errors
};

void check(const Pinned& pinned) {
  CAPTURE(pinned.table);
  const Outcome run = run_rehearse(std::string("validate --format json ") + pinned.table);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json table = json::parse(run.out)[0];
  CHECK(table["rows"].size() == pinned.rows);
  CHECK(table["mean_absolute_error"].get<double>() == Approx(pinned.mean_absolute).margin(0.001));
  CHECK(table["mean_error"].get<double>() == Approx(pinned.mean).margin(0.001));
}

}  // namespace

// Of vTrain's 883 rows, 220 set the costs in simulator/frameworks/presets/megatron-2021.toml; every other row
// of mosaicml-a100 set the loss in llm-foundry-2023.toml; the group "sets constants" of
// megatron-bridge-experts set the launches in megatron-bridge-2025-11.toml; one row of megatron-bridge-gpt-oss
// set its attention with sinks; no row of the other tables set any constant.
TEST_CASE("errors of step time tables are pinned", "[release]") {
  for (const Pinned& pinned : std::vector<Pinned>{{"mosaicml-a100", 82, 0.0442, -0.0205},
                                                  {"bert-nvidia", 13, 0.0581, -0.0469},
                                                  {"megascale-2024", 4, 0.0406, 0.0175},
                                                  {"megatron-core-h100", 5, 0.0406, -0.0136},
                                                  {"nemo-h100-2024", 22, 0.0310, 0.0180},
                                                  {"torchtitan-h100", 22, 0.0944, -0.0785},
                                                  {"megatron-bridge-gpt-oss", 19, 0.1479, -0.1248},
                                                  {"simumax-b200", 10, 0.0350, 0.0214},
                                                  {"pytorch-ddp-gloo", 45, 0.0109, -0.0106}})
    check(pinned);
}

// Every other row of zero-bubble-1f1b set the stage_deviation of all four tables; no other row set any
// constant.
TEST_CASE("errors of the tables of pipelines with profiled stages are pinned", "[release]") {
  for (const Pinned& pinned : std::vector<Pinned>{{"zero-bubble-1f1b", 13, 0.0134, -0.0052},
                                                  {"zero-bubble-1f1b-interleaved", 8, 0.0170, 0.0055},
                                                  {"zero-bubble-1p-2p", 21, 0.0123, -0.0109},
                                                  {"zero-bubble-table-6", 20, 0.0318, 0.0265},
                                                  {"bytedance-stragglers", 6, 0.0546, -0.0527}})
    check(pinned);
}

// Takes minutes: build/bin/test_command "[tables]".
TEST_CASE("errors of large step time tables are pinned", "[.][tables]") {
  for (const Pinned& pinned : std::vector<Pinned>{{"vtrain-single-node", 883, 0.1017, 0.0135},
                                                  {"narayanan-2021", 24, 0.0476, 0.0122},
                                                  {"vtrain-multi-node", 64, 0.0750, -0.0151},
                                                  {"megatron-bridge-dense", 36, 0.0370, 0.0246},
                                                  {"nanotron-h100", 153, 0.1090, -0.0939},
                                                  {"megatron-core-small", 118, 0.1894, -0.0517},
                                                  {"megatron-bridge-experts", 52, 0.1186, -0.0875},
                                                  {"bloom-2022", 62, 0.0639, -0.0484}})
    check(pinned);
}
