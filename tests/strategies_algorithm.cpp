// Checks strategy.all_reduce: the algorithms that the schedule's ops name, and what `auto` chooses.
#include <limits>
#include <set>
#include <string>

#include "models/text/error.hpp"
#include "simulator/strategies/programs/algorithm.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"
#include "tests/contains_text.hpp"
#include "tests/strategies_scenarios.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Scenario on(const ClusterParts& parts, Algorithm algorithm, Protocol protocol) {
  Scenario s = scenario(small_gpt(4), parts.nodes * parts.node.devices, 1, 1);
  s.cluster = make_cluster(parts);
  s.strategy.all_reduce = algorithm;
  s.engine.protocol = protocol;
  return s;
}

std::set<Algorithm> named(const Plan& plan) {
  std::set<Algorithm> all;
  for (const Program& program : plan.schedule->programs)
    for (const Op& op : program.ops)
      if (op.kind == OpKind::collective) all.insert(op.collective.algorithm);
  return all;
}

}  // namespace

TEST_CASE("auto takes the least of those that fit, by their own cost") {
  ClusterParts fast_inside = testing::dgx_like(6);
  fast_inside.node.device_bandwidth = 100e9;
  const std::vector<ClusterParts> clusters = {testing::star_of(16), testing::star_of(12),
                                              testing::dgx_like(4), fast_inside,
                                              testing::torus_of({4, 4, 2})};
  std::set<Algorithm> chosen;
  for (const ClusterParts& parts : clusters)
    for (const Protocol protocol : {Protocol::ideal, Protocol::nccl}) {
      const Scenario s = on(parts, Algorithm::automatic, protocol);
      const std::vector<Endpoint> members = testing::all_devices(*s.cluster);
      AlgorithmChoice choice(s);
      for (double bytes = 8; bytes < 1e10; bytes *= 32) {
        CAPTURE(parts.name, static_cast<int>(protocol.kind), bytes);
        Algorithm best = Algorithm::automatic;
        double best_s = std::numeric_limits<double>::infinity();
        for (const Algorithm a : candidates(*s.cluster, members, protocol)) {
          const double seconds =
              time_as_chosen_s(on_network(collective_plan(a, *s.cluster, members, 0), *s.cluster, members),
                               bytes, protocol, 0);
          if (seconds < best_s) best = a;
          best_s = std::min(best_s, seconds);
        }
        const Algorithm found = choice.of(members, bytes);
        CHECK(found == best);
        chosen.insert(found);
        if (protocol.kind == Protocol::nccl) CHECK((found == Algorithm::ring || found == Algorithm::tree));
      }
    }
  CHECK(chosen.size() == 6);  // each is the fastest in some case
}

TEST_CASE("auto: logarithms for little, bandwidth for much") {
  const Scenario star = on(testing::star_of(16), Algorithm::automatic, Protocol::ideal);
  const std::vector<Endpoint> all = testing::all_devices(*star.cluster);
  // On a star of a power of two, halving and doubling is never slower than the ring. Recursive doubling has
  // half of its steps; between two members, both send the same bytes.
  CHECK(AlgorithmChoice(star).of(all, 8) == Algorithm::recursive_doubling);
  CHECK(AlgorithmChoice(star).of({0, 5}, 1e9) == Algorithm::recursive_doubling);
  CHECK(AlgorithmChoice(star).of(all, 1e9) == Algorithm::halving_doubling);
  const Scenario twelve = on(testing::star_of(12), Algorithm::automatic, Protocol::ideal);
  const std::vector<Endpoint> members = testing::all_devices(*twelve.cluster);
  CHECK(AlgorithmChoice(twelve).of(members, 8) != Algorithm::ring);
  CHECK(AlgorithmChoice(twelve).of(members, 1e9) == Algorithm::ring);
  const Scenario torus = on(testing::torus_of({4, 4, 4}), Algorithm::automatic, Protocol::ideal);
  CHECK(AlgorithmChoice(torus).of(testing::all_devices(*torus.cluster), 1e9) == Algorithm::torus);
  // NCCL's own model, for 16 nodes of eight A100, chooses trees for kilobytes and rings for gigabytes.
  const Scenario gpus = on(testing::dgx_like(16), Algorithm::automatic, Protocol::nccl);
  const std::vector<Endpoint> devices = testing::all_devices(*gpus.cluster);
  CHECK(AlgorithmChoice(gpus).of(devices, 8e3) == Algorithm::tree);
  CHECK(AlgorithmChoice(gpus).of(devices, 8e9) == Algorithm::ring);
}

TEST_CASE("a schedule's ops name a concrete algorithm") {
  CHECK(named(write_schedule(on(testing::star_of(8), Algorithm::tree, Protocol::ideal))) ==
        std::set{Algorithm::tree});
  const std::set<Algorithm> found =
      named(write_schedule(on(testing::star_of(8), Algorithm::automatic, Protocol::ideal)));
  CHECK_FALSE(found.empty());
  CHECK(found.count(Algorithm::automatic) == 0);
}

TEST_CASE("what does not fit the gradients' group is refused, a tied embedding's group then has a ring") {
  const auto uneven = on(testing::star_of(8), Algorithm::torus, Protocol::ideal);
  CHECK_THROWS_AS(write_schedule(uneven), InputError);
  // The data groups are lines of the torus, which are rings; the first and the last of four stages do not
  // form a line.
  Scenario s = on(testing::torus_of({4, 4}), Algorithm::torus, Protocol::ideal);
  s.strategy.data = s.strategy.pipeline = 4;
  CHECK(named(write_schedule(s)) == std::set{Algorithm::ring, Algorithm::torus});
  s.strategy.data = 2;
  s.strategy.pipeline = 6;
  s.cluster = make_cluster(testing::torus_of({4, 3}));
  CHECK_THROWS_AS(write_schedule(s), InputError);
}

TEST_CASE("auto on H100: rings for kilobytes, NVLS from 2 MiB on, NVLSTree over several nodes") {
  // According to NCCL's log for eight GPUs of one node: RING with LL up to 1 MiB, NVLS from 2 MiB on; rings
  // for four GPUs (stas00/ml-engineering network/README.md).
  ClusterParts parts = testing::dgx_like(1);
  parts.node.device = device_preset("h100");
  parts.node.device_bandwidth = 450e9;
  parts.node.device_latency_s = 0.6e-6;
  parts.node.nics = 8;
  parts.node.nic_bandwidth = 50e9;
  const Scenario one = on(parts, Algorithm::automatic, Protocol::nccl);
  const std::vector<Endpoint> eight = testing::all_devices(*one.cluster);
  for (const double bytes : {8.0, 65536.0, 1048576.0})
    CHECK(AlgorithmChoice(one).of(eight, bytes) == Algorithm::ring);
  for (const double bytes : {2097152.0, 1e8, 1e10})
    CHECK(AlgorithmChoice(one).of(eight, bytes) == Algorithm::nvls);
  CHECK(AlgorithmChoice(one).of({0, 1, 2, 3}, 1e10) == Algorithm::ring);
  CHECK(AlgorithmChoice(one).of({0, 1, 2, 3, 4}, 1e10) == Algorithm::nvls);
  parts.nodes = 2;
  const Scenario two = on(parts, Algorithm::automatic, Protocol::nccl);
  CHECK(AlgorithmChoice(two).of(testing::all_devices(*two.cluster), 1e10) == Algorithm::nvls_tree);
  // The switch of an A100 node cannot sum.
  parts.node.device = device_preset("a100-80");
  const Scenario ampere = on(parts, Algorithm::automatic, Protocol::nccl);
  CHECK(AlgorithmChoice(ampere).of(testing::all_devices(*ampere.cluster), 1e10) == Algorithm::ring);
  CHECK_THROWS_WITH(
      AlgorithmChoice(on(parts, Algorithm::nvls, Protocol::nccl)).of({0, 1}, 8),
      contains_text("members without an NVSwitch that reduces; allowed: GPUs from compute capability"));
}

TEST_CASE("auto takes CollNet where the network sums") {
  ClusterParts parts = testing::dgx_like(16);
  parts.node.device = device_preset("a100-80");
  parts.node.device_bandwidth = 300e9;
  parts.node.nics = 8;
  parts.node.nic_bandwidth = 25e9;
  const Scenario plain = on(parts, Algorithm::automatic, Protocol::nccl);
  const std::vector<Endpoint> all = testing::all_devices(*plain.cluster);
  CHECK(AlgorithmChoice(plain).of(all, 1e9) == Algorithm::ring);
  parts.fabric.sharp = true;
  const Scenario sums = on(parts, Algorithm::automatic, Protocol::nccl);
  CHECK(AlgorithmChoice(sums).of(all, 1e9) == Algorithm::collnet_direct);
  CHECK(AlgorithmChoice(sums).of({0, 1, 2, 3}, 1e9) == Algorithm::ring);
  const Scenario two = on(testing::dgx_like(2), Algorithm::collnet_chain, Protocol::nccl);
  CHECK_THROWS_WITH(AlgorithmChoice(two).of(testing::all_devices(*two.cluster), 8),
                    contains_text("allowed: a fabric with sharp = true"));
}
