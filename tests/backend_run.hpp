// Provides scenarios for real ranks, and starts programs under mpirun.
#pragma once

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/command_run.hpp"

namespace rehearse::test {

// Eight layers, which can be cut into any pipeline of up to 8 stages; 50 steps of 64 samples in micro-batches
// of 4. Uses each optimizer's default rate: adam at 20 times its default, 0.02, amplifies rounding errors of
// 1e-7 to 1e-4.
inline constexpr const char* kDeepPerceptron = R"([model.multi_layer_perceptron]
widths = [48, 64, 56, 64, 40, 64, 48, 32, 12]
[training]
global_batch = 64
micro_batch = 4
precision = "fp32"
[cluster]
preset = "cpu-cluster"
[run]
steps = 50
)";

// A transformer that trains in milliseconds.
inline constexpr const char* kTinyTransformer = R"([model.transformer]
layers = 2
hidden = 32
heads = 4
feed_forward = 64
vocabulary = 64
sequence_length = 16
[training]
global_batch = 8
micro_batch = 1
precision = "fp32"
[cluster]
preset = "cpu-cluster"
)";

// Runs rehearse-run with these arguments, which must ask for JSON; returns the losses of all steps.
inline std::vector<double> losses_of(const std::string& arguments) {
  const Outcome outcome = run_program("rehearse-run", arguments);
  INFO(arguments << "\n" << outcome.err);
  REQUIRE(outcome.status == 0);
  return nlohmann::json::parse(outcome.out)["measured"]["losses"].get<std::vector<double>>();
}

inline bool have_mpirun() {
#ifdef REHEARSE_HAVE_MPI
  return std::system("mpirun --version >/dev/null 2>&1") == 0;
#else
  return false;
#endif
}

// Returns the mpirun command. If there are more ranks than cores, idle ranks yield. Disables leak checks,
// because Open MPI does not free all memory at exit.
inline std::string mpirun(int ranks) {
  return "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun "
         "--oversubscribe "
         "--mca mpi_yield_when_idle 1 -np " +
         std::to_string(ranks);
}

}  // namespace rehearse::test
