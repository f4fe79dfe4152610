// Tests all-reduces other than the ring against their closed forms to 0.1 %, and folded against unfolded
// runs.
#include <string>

#include "simulator/collectives/cost.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kB = 1e9, kRoute = 2e-6;  // of star_of(): bandwidth of a link, latency of a route
constexpr Fidelity kCoupled[] = {Fidelity::flow, Fidelity::analytic, Fidelity::automatic};

const char* name(Algorithm a) {
  return kAlgorithmNames[static_cast<std::size_t>(a)].data();
}

Run one_all_reduce(Algorithm algorithm, std::vector<int> endpoints, double bytes, int channels = 0) {
  Schedule s = ring_schedule(static_cast<int>(endpoints.size()), bytes, channels);
  s.programs[0].ops[0].collective.algorithm = algorithm;
  return one_job(std::move(s), std::move(endpoints));
}

double time_s(Algorithm algorithm, const ClusterParts& parts, double bytes, Fidelity fidelity,
              double chunk_bytes = 0) {
  EngineOptions options = ideal(fidelity);
  options.chunk_bytes = chunk_bytes;
  return run_time_s(one_all_reduce(algorithm, all_devices(*make_cluster(parts)), bytes), parts, options);
}

int log2_up(int n) {
  int depth = 0;
  while ((1 << depth) < n) ++depth;
  return depth;
}

// Seconds of one ring of n members: 2 (n-1) (S / (n B) + latency); a reduce-scatter or all-gather takes half.
double ring_s(int n, double bytes, double bandwidth, double latency_s) {
  return 2.0 * (n - 1) * (bytes / n / bandwidth + latency_s);
}

}  // namespace

TEST_CASE("double tree on a star: 2 S / B + 2 ceil(log2 n) latency") {
  // A member has at most four edges, with S/2 each way. With two members it has two edges, with three it has
  // three.
  for (int n : {2, 3, 4, 5, 8, 11, 16, 33})
    for (double bytes : {64.0, 1e4, 1e8})
      for (Fidelity fidelity : kCoupled) {
        CAPTURE(n, bytes, name(fidelity));
        const double buffers = n == 2 ? 1 : n == 3 ? 1.5 : 2;
        CHECK(time_s(Algorithm::tree, star_of(n), bytes, fidelity) ==
              Approx(buffers * bytes / kB + 2 * log2_up(n) * kRoute).epsilon(kTolerance));
      }
}

TEST_CASE("double tree in messages on a star: one piece goes level by level") {
  // n = 2^d: on d-1 levels two children share their parent's link on the way up and down, and at the root
  // there is one child: (2 d - 1) S / B + 2 d latency.
  for (int d : {1, 2, 3, 4, 5})
    for (double bytes : {64.0, 1e4, 1e6}) {  // two halves, each at most one piece long
      CAPTURE(d, bytes);
      CHECK(time_s(Algorithm::tree, star_of(1 << d), bytes, Fidelity::chunk) ==
            Approx((2 * d - 1) * bytes / kB + 2 * d * kRoute).epsilon(kTolerance));
    }
}

TEST_CASE("double tree in messages: with more pieces it comes down to the coupled flow") {
  for (int n : {2, 4, 8, 13, 16}) {
    const double bytes = 1e8, flow_s = time_s(Algorithm::tree, star_of(n, 0), bytes, Fidelity::flow);
    double before_s = 1e9;
    for (int pieces : {1, 4, 16, 64}) {
      CAPTURE(n, pieces);
      const double now_s =
          time_s(Algorithm::tree, star_of(n, 0), bytes, Fidelity::chunk, bytes / 2 / pieces * 1.001);
      CHECK(now_s <= before_s * (1 + 1e-9));
      CHECK(now_s >= flow_s * (1 - 1e-6));
      CHECK(now_s <= flow_s * (1 + 2.0 * log2_up(n) / pieces));
      before_s = now_s;
    }
  }
}

TEST_CASE("halving and doubling on a star: 2 log2 p latency + 2 (p-1)/p S / B, and the rest's two messages") {
  for (int n : {2, 3, 4, 5, 7, 8, 12, 16, 33})
    for (double bytes : {64.0, 1e4, 1e8})
      for (Fidelity fidelity : kAllFidelities) {
        CAPTURE(n, bytes, name(fidelity));
        int power = 1;
        while (2 * power <= n) power *= 2;
        double theory = 2.0 * (power - 1) / power * bytes / kB + 2 * log2_up(power) * kRoute;
        if (power < n) theory += 2 * (bytes / kB + kRoute);
        CHECK(time_s(Algorithm::halving_doubling, star_of(n), bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
}

TEST_CASE("recursive doubling on a star: log2 p (latency + S / B), and the rest's two messages") {
  for (int n : {2, 3, 4, 5, 7, 8, 12, 16, 33})
    for (double bytes : {64.0, 1e4, 1e8})
      for (Fidelity fidelity : kAllFidelities)
        for (double chunk_bytes : {0.0, bytes / 4}) {
          if (chunk_bytes > 0 && fidelity != Fidelity::chunk) continue;
          CAPTURE(n, bytes, name(fidelity), chunk_bytes);
          int power = 1;
          while (2 * power <= n) power *= 2;
          const int steps = log2_up(power) + (power < n ? 2 : 0);
          const double seconds =
              time_s(Algorithm::recursive_doubling, star_of(n), bytes, fidelity, chunk_bytes);
          if (chunk_bytes == 0) {
            CHECK(seconds == Approx(steps * (bytes / kB + kRoute)).epsilon(kTolerance));
            continue;
          }
          // In pieces, a latency passes during the piece before, if that takes as long.
          CHECK(seconds <= steps * (bytes / kB + 4 * kRoute) * (1 + kTolerance));
          // Those of the rest's two messages that a member sends, or receives, pass its link behind its
          // swaps.
          CHECK(seconds >= (log2_up(power) + (power < n ? 1 : 0)) * bytes / kB * (1 - kTolerance));
        }
}

TEST_CASE("hierarchical: ring inside the nodes, ring over the nodes with an eighth, ring inside") {
  for (int nodes : {1, 2, 3, 8})
    for (double bytes : {64.0, 1e5, 1e8})
      for (Fidelity fidelity : kAllFidelities) {
        CAPTURE(nodes, bytes, name(fidelity));
        // A NIC carries two of the eight rings between nodes.
        const double theory = ring_s(8, bytes, 12e9, 0.5e-6) + ring_s(nodes, bytes / 8, kB / 2, kRoute);
        CHECK(time_s(Algorithm::hierarchical, dgx_like(nodes), bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
  for (Fidelity fidelity : kAllFidelities)  // nodes of one device: only the ring between them
    CHECK(time_s(Algorithm::hierarchical, star_of(6), 1e6, fidelity) ==
          Approx(ring_s(6, 1e6, kB, kRoute)).epsilon(kTolerance));
}

TEST_CASE("tree over nodes of eight devices: a chain inside, each channel's trees over its NIC") {
  for (int nodes : {2, 3, 4, 8})
    for (double bytes : {64.0, 1e6, 1e8})
      for (Fidelity fidelity : kCoupled) {
        CAPTURE(nodes, bytes, name(fidelity));
        const double buffers = nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2;
        const double theory = buffers * bytes / (4 * kB) + 2 * (7 * 0.5e-6 + log2_up(nodes) * kRoute);
        CHECK(time_s(Algorithm::tree, dgx_like(nodes), bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
  // One node: a chain of eight in both directions: 2 S / B.
  for (Fidelity fidelity : kCoupled)
    CHECK(time_s(Algorithm::tree, dgx_like(1), 1e8, fidelity) ==
          Approx(2e8 / 12e9 + 14 * 0.5e-6).epsilon(kTolerance));
}

TEST_CASE("halving and doubling over nodes of eight devices: three steps inside, the others over the NICs") {
  for (int nodes : {2, 4, 8})
    for (double bytes : {64.0, 1e6, 1e8})
      for (Fidelity fidelity : kAllFidelities) {
        CAPTURE(nodes, bytes, name(fidelity));
        double theory = 2 * 3 * 0.5e-6 + 2.0 * 7 / 8 * bytes / 12e9;
        theory += 2 * log2_up(nodes) * kRoute + 2.0 * (nodes - 1) / nodes * bytes / 8 / (kB / 2);
        CHECK(time_s(Algorithm::halving_doubling, dgx_like(nodes), bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
}

TEST_CASE("recursive doubling over nodes of eight devices: three steps inside, the others over the NICs") {
  for (int nodes : {1, 2, 4, 8})
    for (double bytes : {64.0, 1e6, 1e8})
      for (Fidelity fidelity : kAllFidelities) {
        CAPTURE(nodes, bytes, name(fidelity));
        // Two devices share a NIC.
        const double theory = 3 * (0.5e-6 + bytes / 12e9) + log2_up(nodes) * (kRoute + bytes / (kB / 2));
        CHECK(time_s(Algorithm::recursive_doubling, dgx_like(nodes), bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
}

TEST_CASE("under leaves that are oversubscribed the far steps take what the uplinks leave") {
  // 16 members, 4 per leaf, one uplink of 4 B / ratio: two steps stay below the leaf; in the third and
  // fourth, all four members send S/8 and S/16 through it.
  const double bytes = 1e8;
  for (double ratio : {1.0, 4.0})
    for (Fidelity fidelity : kAllFidelities) {
      CAPTURE(ratio, name(fidelity));
      const double theory = 2 * bytes / kB * (0.75 + ratio * (0.125 + 0.0625));
      ClusterParts parts = leaf_spine(16, 4, 1, ratio);
      parts.fabric.latency_s = 0;
      CHECK(time_s(Algorithm::halving_doubling, parts, bytes, fidelity) ==
            Approx(theory).epsilon(kTolerance));
    }
}

TEST_CASE("torus of equal dimensions: all links busy, (n-1)/n S / (D B) + 2 D (d-1) latency") {
  struct Case {
    std::vector<int> dims;
    int members;
    int size, count;
  };
  const Case cases[] = {
      {{8}, 8, 8, 1}, {{4, 4}, 16, 4, 2}, {{3, 3}, 9, 3, 2}, {{4, 4, 4}, 64, 4, 3}, {{3, 3, 3}, 27, 3, 3}};
  for (const Case& c : cases)
    for (double bytes : {600.0, 1e5, 1e8})
      for (Fidelity fidelity : kAllFidelities) {
        if (fidelity == Fidelity::chunk && c.members > 27) continue;
        CAPTURE(c.members, c.count, bytes, name(fidelity));
        const double theory =
            (c.members - 1.0) / c.members * bytes / (c.count * kB) + 2 * c.count * (c.size - 1) * 1e-6;
        CHECK(time_s(Algorithm::torus, torus_of(c.dims), bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
}

TEST_CASE("torus of unequal dimensions: parts that meet in a dimension share its links") {
  // Each dimension has two parts that start along it, one per direction; s = S/4. The first part takes 3/4 s
  // along a = 4; the other takes 7/8 s along b = 8. When the first part moves on to b (after 3/4 s, with 7/8
  // x s/4 of its own to go), the other has s/8 left there: both run at half speed until the other is done, at
  // 3/4 s + 2 s/8 = s. The first then has 7/32 s - s/8 = 3/32 s left, runs alone, and ends at s + 3/32 s. The
  // other takes 3/4 x s/8 = 3/32 s along a and ends at the same instant. The all-gather reverses this: the
  // first part starts along b (7/32 s), the other along a (3/32 s) and then moves on to b: 7/8 s, shared
  // until the first has its remaining 4/32 s, at 3/32 s + 2 x 4/32 s = 11/32 s; then alone for another 7/8 s
  // - 4/32 s = 24/32 s: 35/32 s. The first ends along a after 11/32 s + 3/4 s = 35/32 s.
  const double bytes = 1e8, s = bytes / 4 / kB;
  ClusterParts parts = torus_of({4, 8});
  parts.fabric.latency_s = 0;
  CHECK(time_s(Algorithm::torus, parts, bytes, Fidelity::flow) == Approx(70.0 / 32 * s).epsilon(kTolerance));
  CHECK(time_s(Algorithm::torus, parts, bytes, Fidelity::automatic) ==
        Approx(70.0 / 32 * s).epsilon(kTolerance));
  CHECK(time_s(Algorithm::torus, parts, bytes, Fidelity::chunk) == Approx(70.0 / 32 * s).epsilon(0.03));
  // Small buffers pay for the steps: 2 (3 + 7).
  CHECK(time_s(Algorithm::torus, torus_of({4, 8}), 8, Fidelity::flow) == Approx(20e-6).epsilon(kTolerance));
  // A group along one dimension is a ring in both directions; the fabric `ring` is a torus of one dimension.
  const Run line = one_all_reduce(Algorithm::torus, {4, 5, 6, 7}, bytes);
  CHECK(run_time_s(line, torus_of({4, 8}), ideal(Fidelity::flow)) ==
        Approx(0.75 * bytes / kB + 6e-6).epsilon(kTolerance));
}

TEST_CASE("bytes on the wire: 2 (n-1) S altogether, and 2 (n-p) S more for the rest of a power of two") {
  const double bytes = 1e6;
  const auto moved = [&](Algorithm algorithm, const ClusterParts& parts, Fidelity fidelity) {
    const auto cluster = make_cluster(parts);
    return simulate_in_child(one_all_reduce(algorithm, all_devices(*cluster), bytes), *cluster,
                             ideal(fidelity))
        .bytes_total;
  };
  for (Fidelity fidelity : kAllFidelities) {
    CAPTURE(name(fidelity));
    for (Algorithm a :
         {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling, Algorithm::hierarchical}) {
      CAPTURE(name(a));
      CHECK(moved(a, star_of(8), fidelity) == Approx(14 * bytes).epsilon(1e-9));
      // 2 x 7/8 S in each node's ring of eight, 2 x 1/2 S/8 over two nodes
      CHECK(moved(a, dgx_like(2), fidelity) == Approx(30 * bytes).epsilon(1e-9));
    }
    CHECK(moved(Algorithm::halving_doubling, star_of(11), fidelity) ==
          Approx((14 + 6) * bytes).epsilon(1e-9));
    // n log2 n S, and 2 (n-p) S for the rest
    CHECK(moved(Algorithm::recursive_doubling, star_of(8), fidelity) == Approx(24 * bytes).epsilon(1e-9));
    CHECK(moved(Algorithm::recursive_doubling, star_of(11), fidelity) ==
          Approx((24 + 6) * bytes).epsilon(1e-9));
    CHECK(moved(Algorithm::torus, torus_of({4, 3}), fidelity) == Approx(22 * bytes).epsilon(1e-9));
  }
}

TEST_CASE("folded and whole runs are equal, and 1,024 ranks are few flows") {
  const auto check = [](Algorithm algorithm, const ClusterParts& parts, Fidelity fidelity) {
    const auto cluster = make_cluster(parts);
    const Run run = one_all_reduce(algorithm, all_devices(*cluster), 1e7);
    const Trace folded = simulate_in_child(run, *cluster, ideal(fidelity));
    const Trace whole = simulate_in_child(run, *cluster, ideal(fidelity, false));
    CHECK(worst_difference(folded, whole) < 1e-9);
    CHECK(folded.bytes_total == Approx(whole.bytes_total).epsilon(1e-9));
  };
  for (Fidelity fidelity : {Fidelity::flow, Fidelity::automatic})
    for (Algorithm a : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::recursive_doubling,
                        Algorithm::hierarchical}) {
      CAPTURE(name(a), name(fidelity));
      for (int n : {2, 7, 16}) check(a, star_of(n), fidelity);
      if (kSanitized && fidelity == Fidelity::automatic) continue;
      for (int nodes : {1, 3, 4}) check(a, dgx_like(nodes), fidelity);
      check(a, leaf_spine(32, 8, 2, 2), fidelity);
      ClusterParts slow = dgx_like(4);
      slow.slow_links = {{"node2.nic1", 0.3}};
      check(a, slow, fidelity);
    }
  for (Fidelity fidelity : {Fidelity::flow, Fidelity::automatic})
    for (const std::vector<int>& dims : {std::vector<int>{6}, {4, 4}, {4, 6}, {2, 3, 4}}) {
      CAPTURE(dims.size(), dims[0], name(fidelity));
      check(Algorithm::torus, torus_of(dims), fidelity);
      check(Algorithm::torus, torus_of(dims, 2), fidelity);
      ClusterParts slow = torus_of(dims);
      slow.slow_links = {{"node0-node1", 0.5}};
      check(Algorithm::torus, slow, fidelity);
    }
  // Two data-parallel groups with different algorithms, whose all-reduces share the NICs.
  Schedule s;
  s.roles = {role("worker", {{"data", 16}, {"pipeline", 2}})};
  s.works = {work(0.001), work(0.002)};
  for (int stage : {0, 1}) {
    Program p;
    p.name = "stage";
    p.where = {{1, stage}};
    p.streams = {"compute", "gradients"};
    p.ops = {compute("c", 0, stage), all_reduce("a", 1, {{{0}}}, 1e7, {{0, 0}})};
    p.ops[1].collective.algorithm = stage == 0 ? Algorithm::tree : Algorithm::hierarchical;
    Op scatter = all_reduce("s", 1, {{{0}}}, 1e7);
    scatter.collective.kind = CollectiveKind::reduce_scatter;
    scatter.collective.algorithm = p.ops[1].collective.algorithm;
    p.ops.push_back(scatter);
    s.programs.push_back(p);
  }
  for (Fidelity fidelity : {Fidelity::flow, Fidelity::automatic, Fidelity::chunk}) {
    std::vector<int> endpoints;  // each node has four devices of each pipeline stage
    for (int stage : {0, 1})
      for (int i = 0; i < 16; ++i) endpoints.push_back(i / 4 * 8 + i % 4 * 2 + stage);
    const auto cluster = make_cluster(dgx_like(4));
    const Run run = one_job(s, endpoints, 2);
    CHECK(worst_difference(simulate_in_child(run, *cluster, ideal(fidelity)),
                           simulate_in_child(run, *cluster, ideal(fidelity, false))) < 1e-9);
  }
  for (Algorithm a : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::recursive_doubling,
                      Algorithm::hierarchical}) {
    CAPTURE(name(a));
    const auto cluster = make_cluster(dgx_like(128));
    const Trace trace =
        simulate_in_child(one_all_reduce(a, all_devices(*cluster), 1e8), *cluster, ideal(Fidelity::flow));
    CHECK(trace.classes.size() == 1);
  }
}

TEST_CASE("a late member holds up the others, at every fidelity") {
  for (Algorithm a :
       {Algorithm::tree, Algorithm::halving_doubling, Algorithm::recursive_doubling, Algorithm::hierarchical})
    for (Fidelity fidelity : kAllFidelities) {
      CAPTURE(name(a), name(fidelity));
      Run run = one_all_reduce(a, first_endpoints(8), 1e6);
      Schedule s = *run.jobs[0].phases[0].schedule;
      s.works = {work(0.01)};
      s.programs[0].streams = {"compute", "gradients"};
      Op op = s.programs[0].ops[0];
      op.stream = 1;
      op.after = {{0}};
      s.programs[0].ops = {compute("c", 0, 0), op};
      ClusterParts parts = star_of(8);
      parts.slow_devices = {{3, 0.5}};
      const double alone = time_s(a, star_of(8), 1e6, fidelity);
      const double late = run_time_s(one_job(s, first_endpoints(8)), parts, ideal(fidelity));
      // With messages, ranks that are ready may already have started.
      CHECK(late <= 0.02 + alone * (1 + 1e-6));
      CHECK(late >= 0.02 + (fidelity == Fidelity::chunk ? 0.4 : 1 - 1e-6) * alone);
    }
}

TEST_CASE("the time that `auto` goes by is the engine's", "[release]") {
  struct Case {
    ClusterParts parts;
    Algorithm algorithm;
  };
  std::vector<Case> cases;
  for (Algorithm a : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling,
                      Algorithm::recursive_doubling, Algorithm::hierarchical}) {
    cases.push_back({star_of(12), a});
    cases.push_back({dgx_like(4), a});
    cases.push_back({dgx_like(1), a});
    cases.push_back({leaf_spine(16, 4, 2, 2), a});
  }
  cases.push_back({torus_of({4, 4, 2}), Algorithm::torus});
  cases.push_back({torus_of({4, 6}, 2), Algorithm::torus});
  for (const Case& c : cases)
    for (Protocol protocol : {Protocol::ideal, Protocol::nccl})
      for (double chunk_bytes : {0.0, 1e5})
        for (double bytes : {1e3, 1e9}) {  // latency dominates; bandwidth dominates
          CAPTURE(c.parts.name, name(c.algorithm), static_cast<int>(protocol.kind), chunk_bytes, bytes);
          const auto cluster = make_cluster(c.parts);
          const std::vector<Endpoint> members = all_devices(*cluster);
          EngineOptions options = ideal(Fidelity::analytic);
          options.protocol = protocol;
          options.chunk_bytes = chunk_bytes;
          const PlanOnNetwork plan =
              on_network(collective_plan(c.algorithm, *cluster, members, 0), *cluster, members);
          CHECK(time_alone_s(plan, bytes, protocol, chunk_bytes) ==
                Approx(run_time_s(one_all_reduce(c.algorithm, members, bytes), c.parts, options))
                    .epsilon(1e-6));
          if (c.algorithm == Algorithm::torus || chunk_bytes > 0) continue;
          options.fidelity = Fidelity::flow;
          CHECK(time_alone_s(plan, bytes, protocol, chunk_bytes) ==
                Approx(run_time_s(one_all_reduce(c.algorithm, members, bytes), c.parts, options))
                    .epsilon(1e-6));
        }
}

TEST_CASE("NCCL's costs come out alike in messages and as flows") {
  // The remaining difference is the time of the pieces' way through the trees, which a single piece would
  // make large.
  for (const ClusterParts& parts : {star_of(8), dgx_like(kSanitized ? 2 : 3)})
    for (Algorithm a : {Algorithm::tree, Algorithm::halving_doubling, Algorithm::recursive_doubling,
                        Algorithm::hierarchical})
      for (double bytes : {64.0, 1e9}) {
        CAPTURE(parts.name, name(a), bytes);
        EngineOptions options;
        options.fidelity = Fidelity::chunk;
        const Run run = one_all_reduce(a, all_devices(*make_cluster(parts)), bytes);
        const double messages_s = run_time_s(run, parts, options);
        options.fidelity = Fidelity::flow;
        CHECK(messages_s ==
              Approx(run_time_s(run, parts, options)).epsilon(a == Algorithm::tree ? 0.02 : 2e-3));
      }
}

TEST_CASE("a link that dies fails the all-reduce, whatever its algorithm") {
  const auto cluster = make_cluster(star_of(8));
  for (Algorithm a :
       {Algorithm::tree, Algorithm::halving_doubling, Algorithm::recursive_doubling, Algorithm::hierarchical})
    for (Fidelity fidelity : kAllFidelities) {
      CAPTURE(name(a), name(fidelity));
      Run run = one_all_reduce(a, first_endpoints(8), 1e9);
      Event death;
      death.kind = Event::Kind::link_death;
      death.time_s = 0.5;
      death.link = cluster->find_links("node2.nic0.out").at(0);
      run.events = {death};
      const Trace trace = simulate_in_child(run, *cluster, ideal(fidelity));
      CHECK(trace.job_failed == std::vector<bool>{true});
      CHECK(trace.end_s == Approx(0.5).epsilon(1e-6));
    }
}

TEST_CASE("NVLS: a member's NVLink carries the buffer once each way, a NIC as with trees") {
  for (const int nodes : {1, 2, 3, 4, 8})
    for (const double bytes : {64.0, 1e6, 1e8})
      for (const Fidelity fidelity : kAllFidelities) {
        CAPTURE(nodes, bytes, name(fidelity));
        ClusterParts parts = dgx_like(nodes);
        parts.node.device = device_preset("h100");
        const double buffers = nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2;
        const double theory = nodes == 1 ? bytes / 12e9 + 0.5e-6
                                         : buffers * bytes / (4 * kB) + kRoute + 2 * log2_up(nodes) * kRoute;
        CHECK(time_s(nodes == 1 ? Algorithm::nvls : Algorithm::nvls_tree, parts, bytes, fidelity) ==
              Approx(theory).epsilon(kTolerance));
      }
}

TEST_CASE("CollNet: a NIC carries its share of the buffer once each way, a device's NVLink 2 (g-1)/g of it") {
  for (const int nodes : {2, 3, 8})
    for (const double bytes : {64.0, 1e6, 1e8})
      for (const Fidelity fidelity : kAllFidelities) {
        CAPTURE(nodes, bytes, name(fidelity));
        ClusterParts parts = dgx_like(nodes);
        parts.fabric.sharp = true;
        const double chain_s = kRoute + 14 * 0.5e-6, direct_s = kRoute + 2 * 0.5e-6;
        CHECK(time_s(Algorithm::collnet_chain, parts, bytes, fidelity) ==
              Approx(bytes / (4 * kB) + chain_s).epsilon(kTolerance));
        CHECK(time_s(Algorithm::collnet_direct, parts, bytes, fidelity) ==
              Approx(bytes / (4 * kB) + direct_s).epsilon(kTolerance));
        // With faster NICs, the nodes' NVLinks are the limit.
        parts.node.nics = 8;
        parts.node.nic_bandwidth = 100e9;
        CHECK(time_s(Algorithm::collnet_chain, parts, bytes, fidelity) ==
              Approx(1.75 * bytes / 12e9 + chain_s).epsilon(kTolerance));
        CHECK(time_s(Algorithm::collnet_direct, parts, bytes, fidelity) ==
              Approx(1.75 * bytes / 12e9 + direct_s).epsilon(kTolerance));
      }
}

TEST_CASE("CollNet: a leaf's uplink carries what the leaf has summed") {
  // Four nodes per leaf behind one uplink with a NIC's rate: a ring over non-adjacent nodes would cross the
  // uplink four times.
  ClusterParts parts = star_of(16);
  parts.fabric.sharp = true;
  parts.fabric.kind = Fabric::Kind::leaf_spine;
  parts.fabric.nodes_per_leaf = 4;
  parts.fabric.spines = 1;
  parts.fabric.link_bandwidth = kB;
  for (const Fidelity fidelity : kAllFidelities) {
    CAPTURE(name(fidelity));
    CHECK(time_s(Algorithm::collnet_chain, parts, 1e8, fidelity) ==
          Approx(1e8 / kB + 2 * kRoute).epsilon(kTolerance));
  }
}

TEST_CASE("NVLS shares NVLinks with others as rings do") {
  // Two groups of all eight GPUs at the same time: each NVLink carries both buffers.
  ClusterParts parts = dgx_like(1);
  parts.node.device = device_preset("h100");
  Schedule s = ring_schedule(8, 1e8);
  s.programs[0].streams.push_back("other");
  s.programs[0].ops[0].collective.algorithm = Algorithm::nvls;
  s.programs[0].ops.push_back(s.programs[0].ops[0]);
  s.programs[0].ops[1].name = "other";
  s.programs[0].ops[1].stream = 1;
  const auto cluster = make_cluster(parts);
  for (const Fidelity fidelity : {Fidelity::flow, Fidelity::automatic}) {
    CAPTURE(name(fidelity));
    CHECK(run_time_s(one_job(s, all_devices(*cluster)), parts, ideal(fidelity)) ==
          Approx(2e8 / 12e9 + 0.5e-6).epsilon(kTolerance));
  }
}
