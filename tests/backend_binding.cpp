// Tests [run] bind = "core": which core each rank is bound to, and that it stays there.
#include <sched.h>

#include "backend/host/launch.hpp"
#include "backend/runtime/binding.hpp"
#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

TEST_CASE("Ranks take the cores that they may use in turn") {
  using Texts = std::vector<std::string>;
  struct Case {
    Texts mine;
    std::vector<int> cores;  // by rank
  };
  const Case cases[] = {{{"a 0;1", "a 0;1"}, {0, 1}},
                        {{"a 0", "a 1"}, {0, 0}},  // already bound by mpirun
                        {{"a 0;1", "b 0;1", "a 0;1", "b 0;1"}, {0, 0, 1, 1}}};
  for (const Case& c : cases)
    for (std::size_t r = 0; r < c.mine.size(); ++r)
      CHECK(core_of_rank(c.mine, static_cast<int>(r), 2) == c.cores[r]);
  CHECK_THROWS_WITH(core_of_rank({"a 0", "a 0"}, 1, 1),
                    "run.bind is \"core\", and 2 ranks on a may use 1 core; allowed: \"none\", or at most as "
                    "many ranks as cores");
}

TEST_CASE("Lists of processors are read as Linux writes them") {
  CHECK(processors_of_list("0-3,8,10-11") == std::vector<int>{0, 1, 2, 3, 8, 10, 11});
  CHECK(processors_of_list("7") == std::vector<int>{7});
  CHECK(processors_of_list("").empty());
  CHECK(processors_of_list("none").empty());
  CHECK(bind_near("ffff:ff:1f.7") == 0);  // no such device
}

TEST_CASE("Bound ranks are on cores of their own") {
  cpu_set_t whole;
  REQUIRE(sched_getaffinity(0, sizeof whole, &whole) == 0);
  std::vector<int> allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &whole)) allowed.push_back(i);
  const Cores cores = cores_of(allowed);
  std::size_t processors = 0;
  for (const std::vector<int>& core : cores) processors += core.size();
  CHECK(processors == allowed.size());
  const Scratch scratch;
  const std::string scenario = scratch.write("s.toml", std::string(kDeepPerceptron) + "bind = \"core\"\n");
  const auto run = [&](std::size_t ranks) {
    return run_program("rehearse-run", "run --format json --set run.steps=3 --set cluster.nodes=" +
                                           std::to_string(ranks) + " " + scenario);
  };
  std::size_t more = 2;  // first rank count above the cores that divides the batch
  while (more <= cores.size()) more *= 2;
  if (more <= 8) {
    const Outcome many = run(more);
    CHECK(many.status == 1);
    CHECK(many.err.find("run.bind is \"core\", and ") != std::string::npos);
  }
  if (cores.size() < 2) SKIP("one core");
  const Outcome two = run(2);
  CHECK(two.status == 0);
  CHECK(two.out.find("each rank was bound to a core") != std::string::npos);
  LaunchOptions options;
  options.ranks = 2;
  launch(options, [](Transport& transport) {
    bind_to_core(transport);
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) != 0) throw RunError("no affinity");
    std::string text;
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &own)) text += std::to_string(i) + ",";
    const std::vector<std::string> all = all_gather(transport, text);
    if (all[0].empty() || all[0] == all[1]) throw RunError("bound to " + all[0] + " and " + all[1]);
    if (cores_of({0, 1}).size() == 2 && CPU_COUNT(&own) > 2) throw RunError("bound to " + text);
  });
}
