// Tests `rehearse-run verify`, and what runs refuse before they start.
#include <cmath>
#include <limits>

#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse::test;

namespace {

std::string words_of(const std::string& text) {
  std::string words;
  for (const std::string& line : lines_of(text)) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos) words += line.substr(begin) + " ";
  }
  return words;
}

Outcome run_small_gpt(const std::string& command, const std::string& more) {
  return run_program("rehearse-run", command + " " + shipped_scenario("small-gpt") + " " + more,
                     "timeout 300");
}

}  // namespace

TEST_CASE("verify compares the losses of ranks with those of one", "[release]") {
  const Outcome same = run_small_gpt("verify",
                                     "--set strategy.data=1 --set strategy.pipeline=2 --set "
                                     "strategy.sequence_parallel=false --set strategy.scatter_gather=true");
  CAPTURE(same.out, same.err);
  CHECK(same.status == 0);
  CHECK(same.out.find("verified: 22 steps on 4 ranks, largest relative difference ") == 0);
  CHECK(lines_of(same.out).size() == 1);
  // No rounding is that small.
  const Outcome other = run_small_gpt("verify", "--tolerance 1e-12 --set run.steps=4");
  CAPTURE(other.out, other.err);
  CHECK(other.status == 1);
  CHECK(other.out.empty());
  CHECK(words_of(other.err).find("not verified: step ") != std::string::npos);
}

TEST_CASE("verify refuses what does not learn what one rank learns") {
  struct Case {
    const char *settings, *told;
  };
  const Case cases[] = {
      {"--set run.compute=timed", "nothing is trained that could be verified: run.compute is \"timed\""},
      {"--set strategy.sequence_parallel=false --set strategy.tensor=1 --set strategy.data=4 --set "
       "strategy.gradients=local-sgd",
       "local SGD averages weights only every few steps"},
      {"--set strategy.gradients=delayed-all-reduce", "gradients are applied one step late"},
  };
  for (const Case& c : cases) {
    const Outcome refused = run_small_gpt("verify", c.settings);
    CAPTURE(c.settings, refused.err);
    CHECK(refused.status == 2);
    CHECK(refused.out.empty());
    CHECK(words_of(refused.err).find(c.told) != std::string::npos);
  }
}

TEST_CASE("The answer says how many rounds asynchronous workers did for the steps that were asked for") {
  const Outcome run = run_program("rehearse-run",
                                  "run " + shipped_scenario("mlp-ring") +
                                      " --set strategy.gradients=parameter-server --set "
                                      "strategy.parameter_server.mode=async --set run.steps=2",
                                  "timeout 300");
  CAPTURE(run.out, run.err);
  CHECK(run.status == 0);
  CHECK(words_of(run.out).find(
            "each of the 2 steps of run.steps is a window of 8 rounds of every worker, after 8 "
            "rounds until all are under way; 24 rounds of each worker in all") != std::string::npos);
}

TEST_CASE("What a machine or its ranks cannot hold is refused before any of them starts") {
  const Outcome crowded = run_program("rehearse-run", "run " + shipped_scenario("gpt3-175b"), "timeout 300");
  CAPTURE(crowded.err);
  CHECK(crowded.status == 2);
  CHECK(words_of(crowded.err).find("768 ranks would run on ") != std::string::npos);
  CHECK(words_of(crowded.err).find("--oversubscribe starts them all the same") != std::string::npos);
  const Outcome uneven = run_small_gpt("run", "--set model.transformer.vocabulary=65");
  CAPTURE(uneven.err);
  CHECK(uneven.status == 2);
  CHECK(words_of(uneven.err)
            .find("vocabulary is 65 with strategy.tensor = 2; allowed for real ranks: a multiple of "
                  "2, such as 66") != std::string::npos);
}
