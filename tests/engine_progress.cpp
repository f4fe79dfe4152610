// Tests a simulation's progress as its parent process reads it.
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Returns the counts after a child process has simulated everything.
SimulationProgress progress_at_the_end(const Run& run, const ClusterParts& parts,
                                       const EngineOptions& options) {
  const SharedProgress shared;
  const auto cluster = make_cluster(parts);
  const pid_t child = fork();
  if (child == 0) {
    shared.count_here();
    try {
      simulate(run, *cluster, options);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
  return shared.read();
}

}  // namespace

TEST_CASE("the counts of a simulation end at their total") {
  struct Case {
    const char* name;
    Fidelity fidelity;
    bool fold;
    double chunk_bytes;
    std::int64_t total;
  };
  for (const Case& c : {
           Case{"one class with one op, thrice", Fidelity::flow, true, 0, 3},
           Case{"eight ranks with one op, thrice", Fidelity::flow, false, 0, 24},
           Case{"and 14 steps of a ring for each", Fidelity::chunk, false, 0, 24 + 3 * 8 * 14},
           Case{"of four pieces", Fidelity::chunk, false, 25e3, 24 + 3 * 8 * 14 * 4},
           Case{"of one class", Fidelity::chunk, true, 25e3, 3 + 3 * 14 * 4},
       }) {
    CAPTURE(c.name);
    EngineOptions options = ideal(c.fidelity, c.fold);
    options.chunk_bytes = c.chunk_bytes;
    const SimulationProgress end =
        progress_at_the_end(one_job(ring_schedule(8, 8 * 1e5), first_endpoints(8), 3), star(8), options);
    CHECK(end.stage == SimulationStage::run);
    CHECK(end.total == c.total);
    CHECK(end.done == c.total);
  }
}

TEST_CASE("without a watcher nothing is counted, and with one the answer is the same") {
  begin_stage(SimulationStage::run, 5);  // nobody is watching
  advance_stage(3);
  const Run run = one_job(ring_schedule(4, 1e6), first_endpoints(4));
  const auto cluster = make_cluster(star(4));
  const double alone = simulate_in_child(run, *cluster, ideal(Fidelity::flow)).end_s;
  const double watched =
      simulate_in_child(run, *cluster, ideal(Fidelity::flow), [](const SimulationProgress& p) {
        CHECK(p.done <= p.total);
      }).end_s;
  CHECK(alone == watched);
}
