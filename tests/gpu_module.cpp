// Tests the module for GPUs: which runs load it, and what is told when it or a library is missing.
#ifdef REHEARSE_HAVE_CUDA

#include <filesystem>

#include "backend/gpu/gpu_module.hpp"
#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;

namespace {

namespace fs = std::filesystem;

// The libraries that the dynamic loader would load for the program, before it runs.
std::string libraries_of_program() {
  return test::run_program("rehearse-run", "", "LD_TRACE_LOADED_OBJECTS=1").out;
}

}  // namespace

TEST_CASE("a program that runs on processors loads no library of GPUs") {
  const std::string libraries = libraries_of_program();
  CHECK(libraries.find("libstdc++") != std::string::npos);
  for (const char* library : {"libcudart", "libcublas", "libnccl"}) {
    CAPTURE(library, libraries);
    CHECK(libraries.find(library) == std::string::npos);
  }
}

TEST_CASE("a module for GPUs that cannot be loaded is told with what is missing") {
  const test::Scratch scratch;
  const std::string none = scratch.path("none.so"), text = scratch.write("text.so", "no library");
  struct Case {
    std::vector<std::string> files;
    std::string told;
  };
  for (const Case& c : {Case{{none, none + "2"}, "there is no " + none + " and no " + none + "2"},
                        Case{{none, text}, text + ", cannot be loaded: "},
                        Case{{"/proc/self/exe"}, "/proc/self/exe, cannot be loaded: "}}) {
    CAPTURE(c.told);
    std::string told;
    try {
      load_gpu_module(c.files);
    } catch (const RunError& error) {
      told = error.what();
    }
    CHECK(told.find(c.told) != std::string::npos);
  }
}

TEST_CASE("without its module, a run takes processors if it may") {
  const test::Scratch scratch;
  const std::string program = scratch.path("rehearse-run"),
                    scenario = scratch.write("two-ranks.toml", test::kTwoRanks);
  fs::copy_file(fs::path(REHEARSE_BIN_DIR) / "rehearse-run", program);
  const auto run = [&](const std::string& device) {
    return test::run_shell("STAND_IN_GPUS=2 LD_PRELOAD=" REHEARSE_STAND_IN " " + program +
                           " run --patience 20 --format json --device " + device + " " + scenario);
  };
  const test::Outcome refused = run("gpu");
  CHECK(refused.status == 1);
  CHECK(refused.err.find("the module for GPUs is missing: there is no " + scratch.path("rehearse-gpu.so")) !=
        std::string::npos);
  CHECK(test::measured_in(run("auto")).at("executor") == "host");
  // Beside the program, or in lib/rehearse beside its folder.
  fs::copy_file(fs::path(REHEARSE_BIN_DIR) / "../lib/rehearse/rehearse-gpu.so",
                scratch.path("rehearse-gpu.so"));
  CHECK(test::measured_in(run("auto")).at("executor") == "cuda");
}

#endif
