// Tests that output printed by libraries does not mix with the result.
#ifdef REHEARSE_HAVE_CUDA

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/gpu_run.hpp"

using namespace rehearse;

TEST_CASE("NCCL's log stays out of the result") {
  const test::Scratch scratch;
  const std::string log = scratch.path("nccl.log"), level = "STAND_IN_GPUS=2 NCCL_DEBUG=INFO";
  struct Case {
    std::string environment;
    bool to_file = false;  // otherwise the log goes to standard error
  };
  for (const Case& c : std::vector<Case>{{level, false}, {level + " NCCL_DEBUG_FILE=" + log, true}}) {
    CAPTURE(c.environment);
    const test::Outcome outcome = test::run_on_stand_in(
        "rehearse-run",
        "run --device gpu --patience 20 --format json " + scratch.write("two-ranks.toml", test::kTwoRanks),
        c.environment);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    CHECK(nlohmann::json::parse(outcome.out)["measured"]["executor"] == "cuda");
    CHECK((outcome.err.find("NCCL INFO") == std::string::npos) == c.to_file);
    CHECK((test::read_file(log).find("NCCL INFO") != std::string::npos) == c.to_file);
  }
}

#endif
