// Checks that the memory of a long step is found from the first micro-batches.
#include <fmt/format.h>

#include "simulator/schedule/peak_memory.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/strategies/worker_memory.hpp"
#include "tests/memory_run.hpp"

using namespace rehearse;
using namespace rehearse::testing;

TEST_CASE("a worker's bytes do not depend on how many micro-batches were written to find them") {
  constexpr const char* kNode = "preset = \"dgx-a100\"\nnodes = 1\n";
  struct Case {
    const char* strategy;
    int pipeline = 1;
  };
  for (const Case& c : std::vector<Case>{
           {"data = 8\n"},
           {"data = 8\nzero_stage = 1\n"},
           {"data = 8\nzero_stage = 2\n"},
           {"data = 8\nzero_stage = 3\n"},
           {"data = 8\ngradients = \"local-sgd\"\n"},
           {"data = 2\npipeline = 4\nschedule = \"1f1b\"\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"1f1b\"\nzero_stage = 3\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"gpipe\"\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"interleaved\"\nvirtual_stages = 3\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"breadth-first\"\nvirtual_stages = 3\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"zb-h1\"\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"zb-h2\"\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"zb-v\"\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"dualpipe-v\"\n", 4},
           {"data = 2\npipeline = 4\nschedule = \"dualpipe\"\n", 4},
           {"data = 2\npipeline = 2\ntensor = 2\nsequence_parallel = true\nblocking_p2p = true\n", 2}})
    for (const int microbatches : {16, 64, 128, 132, 256})
      for (const char* recompute : {"none", "full"}) {
        CAPTURE(c.strategy, microbatches, recompute);
        const int data =
            8 / c.pipeline / (std::string(c.strategy).find("tensor") == std::string::npos ? 1 : 2);
        const Scenario scenario =
            scenario_of(gpt_text({24}),
                        fmt::format("micro_batch = 2\nglobal_batch = {}\nrecompute = \"{}\"\n",
                                    2 * data * microbatches, recompute),
                        c.strategy, kNode);
        REQUIRE(scenario.microbatches >= microbatches / 2);  // DualPipe runs them from both ends
        CHECK(worker_bytes_of(scenario) == peak_worker_bytes(*write_schedule(scenario).schedule));
      }
}
