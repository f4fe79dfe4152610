// Runs the tests that need a GPU on the stand-in.
#ifdef REHEARSE_HAVE_CUDA

#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;

namespace {

// Runs test cases of test_cuda with delayed GPU work. Delays matter between ranks; a single stream keeps its
// order.
void run_test_cuda(const std::string& cases, int delay_us = 0, const std::string& environment = "") {
  const test::Outcome outcome = test::run_on_stand_in(
      "test_cuda", "'" + cases + "' 2>&1", environment + " STAND_IN_DELAY_US=" + std::to_string(delay_us));
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.find("All tests passed") != std::string::npos);
  CHECK(outcome.out.find("skipped:") == std::string::npos);
}

}  // namespace

TEST_CASE("training on the stand-in in fp32") {
  run_test_cuda("training on a GPU in fp32");
}

TEST_CASE("learning on the stand-in in fp32") {
  run_test_cuda("training on a GPU learns in fp32");
}

TEST_CASE("parts of a perceptron on the stand-in") {
  run_test_cuda("training on a GPU in parts of a perceptron");
}

TEST_CASE("training on the stand-in in bf16") {
  run_test_cuda("training on a GPU in bf16");
}

TEST_CASE("kernels bound by memory on the stand-in") {
  run_test_cuda("kernels bound by memory*");
}

#ifdef REHEARSE_CUDNN_STAND_IN
TEST_CASE("convolutions on the stand-in") {
  run_test_cuda("convolutions*", 0,
                "LD_LIBRARY_PATH=" REHEARSE_CUDNN_STAND_IN "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
}
#endif

TEST_CASE("compressed gradients on the stand-in") {
  run_test_cuda("training on a GPU compresses gradients as processors do");
}

TEST_CASE("messages and collectives on the stand-in") {
  run_test_cuda("messages and collectives between GPUs", 20);
}

// For SGD and momentum see gpu_training.cpp.
TEST_CASE("training on the stand-in by Adam") {
  run_test_cuda("GPUs train as processors do by Adam", 20);
}

#endif
