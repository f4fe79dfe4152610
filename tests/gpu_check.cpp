// Tests that backend/check-gpu.sh runs to its end on the stand-in: each part separately, with small layers
// and short measurements.
#ifdef REHEARSE_HAVE_CUDA

#include <filesystem>

#include "simulator/costs/link_profile.hpp"
#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;
namespace fs = std::filesystem;

namespace {

// Runs one part on a machine for which a fake nvidia-smi lists two GPUs.
void check_part(const test::Scratch& scratch, const std::string& part) {
  const std::string tool = scratch.write("nvidia-smi", "#!/bin/sh\necho GPU 0: one\necho GPU 1: another\n");
  fs::permissions(tool, fs::perms::owner_all);
  const test::Outcome outcome =
      test::run_shell("PATH=" + fs::path(tool).parent_path().string() +
                      ":$PATH CHECK_GPU_BUILD=" REHEARSE_BIN_DIR "/.. CHECK_GPU_PRELOAD=" REHEARSE_STAND_IN
                      " CHECK_GPU_SECONDS=4 CHECK_GPU_WIDTH=32 STAND_IN_GPUS=2 "
                      "STAND_IN_MEMORY_MB=3072 " REHEARSE_TESTS_DIR "/../backend/check-gpu.sh --only " +
                      part + " " + scratch.path("results"));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("All passed") != std::string::npos);
}

}  // namespace

TEST_CASE("check-gpu.sh records runs") {
  const test::Scratch scratch;
  check_part(scratch, "record");
  const std::string bf16 = test::read_file(scratch.path("results/run-bf16-2.log"));
  CHECK(bf16.find("\"losses\"") != std::string::npos);
  for (const char* name : {"one", "ring-4", "server-3", "pipeline-4", "bf16-2"}) {
    CAPTURE(name);
    const test::Outcome judged =
        test::run_rehearse("validate " + scratch.path("results/run-" + std::string(name) + ".json"));
    CHECK(judged.status == 0);
  }
}

TEST_CASE("check-gpu.sh calibrates") {
  const test::Scratch scratch;
  check_part(scratch, "calibrate");
  const LinkProfile links = read_link_profile_file(scratch.path("results/calibrated/gpu-links.toml"));
  CHECK(links.title.find("NCCL") != std::string::npos);
  CHECK(fs::exists(scratch.path("results/calibrated/gpu-device.toml")));
  CHECK(fs::exists(scratch.path("results/calibrated/links.csv")));
}

TEST_CASE("check-gpu.sh is used in no other way than it says") {
  for (const char* arguments : {"--only nothing", "--only", "--other", "one two"}) {
    CAPTURE(arguments);
    const test::Outcome outcome =
        test::run_shell(std::string(REHEARSE_TESTS_DIR "/../backend/check-gpu.sh ") + arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find("usage: ") != std::string::npos);
  }
}

#endif
