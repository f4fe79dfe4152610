// Runs programs with the stand-in for CUDA, cuBLAS and NCCL in place of the real libraries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

namespace rehearse::test {

// Two ranks, each with all layers.
inline constexpr const char* kTwoRanks = R"([model.multi_layer_perceptron]
widths = [24, 32, 28, 32, 10]
[training]
global_batch = 24
micro_batch = 4
precision = "fp32"
[cluster]
preset = "cpu-cluster"
nodes = 2
[strategy]
data = 2
[run]
steps = 4
)";

// Returns the record in the result of a run with `--format json`, which must have succeeded.
inline nlohmann::json measured_in(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return nlohmann::json::parse(outcome.out).at("measured");
}

// Runs a program on the stand-in; `environment` contains its settings (tests/stand_in/settings.hpp).
inline Outcome run_on_stand_in(const std::string& program, const std::string& arguments,
                               const std::string& environment = "") {
  return run_program(program, arguments, environment + " LD_PRELOAD=" REHEARSE_STAND_IN);
}

}  // namespace rehearse::test
