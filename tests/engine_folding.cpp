// Tests that folding is exact: the end of every op on every rank, folded against unfolded, to 1e-9 relative.
#include <random>

#include "models/text/error.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Compares the folded with the unfolded run, and returns the number of classes of the folded run.
int check_folding(const Run& run, const ClusterParts& parts, Fidelity fidelity) {
  const auto cluster = make_cluster(parts);
  const Trace folded = simulate_in_child(run, *cluster, ideal(fidelity));
  const Trace whole = simulate_in_child(run, *cluster, ideal(fidelity, false));
  CHECK(worst_difference(folded, whole) < 1e-9);
  CHECK(folded.bytes_total == Approx(whole.bytes_total).epsilon(1e-9));
  CHECK(folded.classes.size() <= whole.classes.size());
  return static_cast<int>(folded.classes.size());
}

// Returns pipelines of `stages` stages (m micro-batches forward and backward) with `data` replicas, whose
// gradients are all-reduced over each stage's replicas. Stage times and gradient bytes differ by stage. data
// is the innermost dimension.
Schedule pipelines(int data, int stages, int microbatches, double activation_bytes, double gradient_bytes,
                   const std::vector<double>& stage_s) {
  Schedule s;
  s.roles = {role("worker", {{"data", data}, {"pipeline", stages}})};
  for (int stage = 0; stage < stages; ++stage) s.works.push_back(work(stage_s[stage % stage_s.size()]));
  for (int stage = 0; stage < stages; ++stage) {
    Program p;
    p.name = "stage";
    p.where = {{1, stage}};
    p.streams = {"compute", "from before", "to next", "from next", "to before", "gradients"};
    std::vector<int> forward, backward;
    const auto add = [&](Op op) {
      p.ops.push_back(std::move(op));
      return static_cast<int>(p.ops.size()) - 1;
    };
    const auto after = [](int op) { return std::vector<Dependency>{{op, 0}}; };
    for (int m = 0; m < microbatches; ++m) {
      std::vector<Dependency> needs;
      if (stage > 0) needs = after(add(exchange("rf", 1, {receive(Peer::along(1, -1), activation_bytes)})));
      forward.push_back(add(compute("f", 0, stage, needs)));
      if (stage + 1 < stages)
        add(exchange("sf", 2, {send(Peer::along(1, 1), activation_bytes)}, after(forward.back())));
    }
    for (int m = 0; m < microbatches; ++m) {
      std::vector<Dependency> needs;
      if (stage + 1 < stages)
        needs = after(add(exchange("rb", 3, {receive(Peer::along(1, 1), activation_bytes, 1)})));
      backward.push_back(add(compute("b", 0, stage, needs)));
      if (stage > 0)
        add(exchange("sb", 4, {send(Peer::along(1, -1), activation_bytes, 1)}, after(backward.back())));
    }
    add(all_reduce("gradients", 5, {{{0}}}, gradient_bytes * (1 + stage % 3), after(backward.back())));
    s.programs.push_back(p);
  }
  return s;
}

Schedule servers(int workers, int servers_count, double bytes) {
  Schedule s;
  s.roles = {role("worker", {{"data", workers}}), role("server", {{"server", servers_count}})};
  s.works = {work(0.01)};
  Program worker, server;
  worker.name = "worker";
  worker.streams = {"compute", "network"};
  worker.ops = {compute("c", 0, 0), exchange("push", 1, {send(Peer::each(1), bytes)}, {{0, 0}}),
                exchange("pull", 1, {receive(Peer::each(1), bytes, 1)})};
  server.name = "server";
  server.role = 1;
  server.streams = {"network"};
  server.ops = {exchange("pushes", 0, {receive(Peer::each(0), bytes)}),
                exchange("pulls", 0, {send(Peer::each(0), bytes, 1)})};
  s.programs = {worker, server};
  return s;
}

constexpr Fidelity kFidelities[] = {Fidelity::flow, Fidelity::automatic, Fidelity::chunk};

}  // namespace

TEST_CASE("folding: contiguous and strided rings over leaves") {
  for (Fidelity fidelity : kFidelities)
    for (int n : {8, 64}) {
      CAPTURE(n, static_cast<int>(fidelity));
      check_folding(one_job(ring_schedule(n, 1e7), first_endpoints(n)), leaf_spine(n, 8, 4, 2), fidelity);
      std::vector<int> strided;
      for (int i = 0; i < n; ++i) strided.push_back(i % 8 * (n / 8) + i / 8);
      check_folding(one_job(ring_schedule(n, 1e7), strided), leaf_spine(n, n / 8, 2, 2), fidelity);
    }
}

TEST_CASE("folding: 512 ranks over leaves of 32 fold to few classes") {
  const auto classes = [](int ranks, Fidelity fidelity) {
    const Run run = one_job(ring_schedule(ranks, 1e8), first_endpoints(ranks));
    return check_folding(run, leaf_spine(ranks, 32, 4, 2), fidelity);
  };
  CHECK(classes(kSanitized ? 128 : 512, Fidelity::flow) <= 8);
  CHECK(classes(128, Fidelity::chunk) <= 64);  // unfolded, the run has 2 (n-1) n messages
}

TEST_CASE("folding: pipelines times data on a star, oversubscribed and Clos fabrics") {
  const std::vector<double> uneven = {0.010, 0.012, 0.011};
  for (Fidelity fidelity : kFidelities) {
    CAPTURE(static_cast<int>(fidelity));
    const Run run = one_job(pipelines(8, 4, 4, 1e6, 1e7, uneven), first_endpoints(32));
    CHECK(check_folding(run, star(32), fidelity) == 4);
    check_folding(run, leaf_spine(32, 4, 1, 4), fidelity);
    check_folding(run, leaf_spine(32, 4, 4, 1), fidelity);
  }
}

TEST_CASE("folding: 64 pipelines of 8 stages, 512 ranks") {
  const int data = kSanitized ? 16 : 64, ranks = 8 * data;
  const Run run = one_job(pipelines(data, 8, 4, 1e6, 1e7, {0.01, 0.011}), first_endpoints(ranks));
  CHECK(check_folding(run, star(ranks), Fidelity::flow) == 8);
  CHECK(check_folding(run, leaf_spine(ranks, 32, 4, 2), Fidelity::automatic) <= ranks / 4);
}

TEST_CASE("folding: workers and servers") {
  for (Fidelity fidelity : kFidelities)
    for (int k : {1, 4}) {
      CAPTURE(k, static_cast<int>(fidelity));
      CHECK(check_folding(one_job(servers(60, k, 1e6), first_endpoints(60 + k)), star(64), fidelity) == 2);
      check_folding(one_job(servers(60, k, 1e6), first_endpoints(60 + k)), leaf_spine(64, 8, 2, 2), fidelity);
    }
}

TEST_CASE("folding: a straggler and a slow link get classes of their own") {
  for (Fidelity fidelity : kFidelities) {
    CAPTURE(static_cast<int>(fidelity));
    const Run run = one_job(pipelines(8, 4, 4, 1e6, 1e7, {0.01}), first_endpoints(32));
    ClusterParts straggler = star(32);
    straggler.slow_devices = {{13, 0.8}};
    CHECK(check_folding(run, straggler, fidelity) > 4);
    ClusterParts slow_nic = star(32);
    slow_nic.slow_links = {{"node5.nic0", 0.3}};
    check_folding(run, slow_nic, fidelity);
    ClusterParts slow_uplink = leaf_spine(32, 4, 2, 1);
    slow_uplink.slow_links = {{"leaf3-spine1", 0.25}};
    check_folding(run, slow_uplink, fidelity);
  }
}

TEST_CASE("a rank begins at its own time, those that begin together are folded") {
  Schedule s;
  s.roles = {role("worker", {{"data", 4}})};
  s.works = {work(1)};
  Program p;
  p.name = "worker";
  p.streams = {"compute"};
  p.ops = {compute("compute", 0, 0)};
  s.programs = {p};
  Run run = one_job(s, first_endpoints(4), 2);
  const std::vector<double> start_s = {0, 0.5, 0.5, 2};
  run.jobs[0].start_s = start_s;
  const auto cluster = make_cluster(star(4));
  const Trace trace = simulate_in_child(run, *cluster, ideal(Fidelity::automatic));
  CHECK(trace.classes.size() == 3);
  std::map<OpRun, double> all = ends(trace);
  for (int rank = 0; rank < 4; ++rank)
    for (int step = 0; step < 2; ++step)
      CHECK(all.at({0, 0, rank, 0, step, 0}) == Approx(start_s[static_cast<std::size_t>(rank)] + step + 1));
  run.jobs[0].start_s = {0, 1};
  CHECK_THROWS_AS(simulate_in_child(run, *cluster, ideal(Fidelity::automatic)), RunError);
}

TEST_CASE("folding: two jobs on one fabric") {
  Run run = one_job(ring_schedule(16, 1e7), first_endpoints(16));
  std::vector<int> rest(16);
  for (int i = 0; i < 16; ++i) rest[i] = 16 + i;
  run.jobs.push_back(one_job(pipelines(4, 4, 3, 1e6, 1e6, {0.001}), rest).jobs[0]);
  for (Fidelity fidelity : kFidelities) check_folding(run, leaf_spine(32, 8, 2, 4), fidelity);
}

TEST_CASE("folding: 20 random uneven cases") {
  std::mt19937 random(20240229);
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  for (int i = 0; i < 20; ++i) {
    const int data = 1 << pick(0, 4), stages = 1 << pick(0, 3), n = data * stages, per_leaf = 1 << pick(0, 3);
    std::vector<double> stage_s;
    for (int k = pick(1, 4); k > 0; --k) stage_s.push_back(1e-3 * pick(5, 15));
    Schedule s = pipelines(data, stages, pick(1, 6), 1e5 * pick(1, 30), 1e6 * pick(1, 30), stage_s);
    std::vector<int> endpoints = first_endpoints(n);
    if (pick(0, 2) == 0) std::shuffle(endpoints.begin(), endpoints.end(), random);
    const int nodes = (n + per_leaf - 1) / per_leaf * per_leaf;
    ClusterParts parts = leaf_spine(nodes, per_leaf, 1 << pick(0, 2), pick(1, 4));
    if (pick(0, 2) == 0) parts.fabric.routing = Fabric::Routing::ecmp_hash;
    if (pick(0, 1) == 0) parts.slow_devices = {{pick(0, n - 1), 0.1 * pick(3, 9)}};
    if (pick(0, 1) == 0)
      parts.slow_links = {{"node" + std::to_string(pick(0, nodes - 1)) + ".nic0", 0.1 * pick(3, 9)}};
    CAPTURE(i, data, stages, per_leaf);
    for (Fidelity fidelity : kFidelities) check_folding(one_job(s, endpoints, 2), parts, fidelity);
    // On links that are not shared, closed forms give the same result as flows, only faster. The remaining
    // difference is the rounding of bytes in SimGrid.
    const auto cluster = make_cluster(parts);
    const Run run = one_job(s, endpoints, 2);
    CHECK(worst_difference(simulate_in_child(run, *cluster, ideal(Fidelity::automatic)),
                           simulate_in_child(run, *cluster, ideal(Fidelity::flow))) < 1e-7);
  }
}
