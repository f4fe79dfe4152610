// Tests simulated times against closed forms, to 0.1 %, in cases where these are exact.
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr Fidelity kWithContention[] = {Fidelity::chunk, Fidelity::flow, Fidelity::automatic};

// Returns a schedule in which n workers push S bytes to the k servers (S / k to each) and pull as many back.
Schedule parameter_server(int workers, int servers, double bytes) {
  Schedule s;
  s.roles = {role("worker", {{"data", workers}}), role("server", {{"server", servers}})};
  Program worker, server;
  worker.name = "worker";
  worker.streams = {"network"};
  worker.ops = {exchange("push", 0, {send(Peer::each(1), bytes / servers)}),
                exchange("pull", 0, {receive(Peer::each(1), bytes / servers, 1)})};
  server.name = "server";
  server.role = 1;
  server.streams = {"network"};
  server.ops = {exchange("pushes", 0, {receive(Peer::each(0), bytes / servers)}),
                exchange("pulls", 0, {send(Peer::each(0), bytes / servers, 1)})};
  s.programs = {worker, server};
  return s;
}

// Returns nodes of 8 devices with one NIC each, connected by a non-blocking switch.
ClusterParts eight_nics(int nodes) {
  ClusterParts parts = star(nodes);
  parts.node.devices = 8;
  parts.node.nics = 8;
  parts.node.interconnect = Node::Interconnect::nvswitch;
  parts.node.device_bandwidth = 300 * kBandwidth;
  return parts;
}

}  // namespace

TEST_CASE("ring all-reduce on a star: 2 (n-1) (S / (n B) + latency)") {
  for (int n : {2, 3, 4, 8, 16, 64})
    for (double bytes : {64.0, 1e4, 1e6, 1e8})
      for (Fidelity fidelity : kAllFidelities) {
        CAPTURE(n, bytes, name(fidelity));
        const double theory = 2 * (n - 1) * (bytes / (n * kBandwidth) + 2 * kHopLatency);
        CHECK(run_time_s(one_job(ring_schedule(n, bytes), first_endpoints(n)), star(n), ideal(fidelity)) ==
              Approx(theory).epsilon(kTolerance));
      }
}

TEST_CASE("reduce-scatter and all-gather on a star: (n-1) (S / (n B) + latency)") {
  for (CollectiveKind kind : {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
    for (Fidelity fidelity : kAllFidelities) {
      CAPTURE(name(fidelity), static_cast<int>(kind));
      Schedule s = ring_schedule(8, 1e6);
      s.programs[0].ops[0].collective.kind = kind;
      CHECK(run_time_s(one_job(s, first_endpoints(8)), star(8), ideal(fidelity)) ==
            Approx(7 * (1e6 / (8 * kBandwidth) + 2 * kHopLatency)).epsilon(kTolerance));
    }
}

TEST_CASE("all-to-all: (n-1) S / B on a star, across leaves the uplinks carry what must cross them") {
  const double bytes = 1e7;  // from each rank to each other
  const auto schedule = [&](int n) {
    Schedule s = ring_schedule(n, bytes);
    s.programs[0].ops[0].collective.kind = CollectiveKind::all_to_all;
    return s;
  };
  for (Fidelity fidelity : kAllFidelities) {
    CAPTURE(name(fidelity));
    CHECK(run_time_s(one_job(schedule(8), first_endpoints(8)), star(8, kBandwidth, 0), ideal(fidelity)) ==
          Approx(7 * bytes / kBandwidth).epsilon(kTolerance));
    // Two leaves of 4 nodes at 4:1: 16 pairs in each direction over 4 B / 4.
    ClusterParts parts = leaf_spine(8, 4, 1, 4);
    parts.fabric.latency_s = 0;
    CHECK(run_time_s(one_job(schedule(8), first_endpoints(8)), parts, ideal(fidelity)) ==
          Approx(16 * bytes / kBandwidth).epsilon(kTolerance));
  }
}

TEST_CASE("a ring whose every edge crosses the spine slows by the oversubscription") {
  const double bytes = 1e9;
  for (double ratio : {1.0, 2.0, 4.0})
    for (int leaves : {2, 4})
      for (Fidelity fidelity : kWithContention) {
        CAPTURE(ratio, leaves, name(fidelity));
        const int per_leaf = 4, n = leaves * per_leaf;
        std::vector<int> endpoints;  // neighbours in the ring are under different leaves
        for (int i = 0; i < per_leaf; ++i)
          for (int leaf = 0; leaf < leaves; ++leaf) endpoints.push_back(leaf * per_leaf + i);
        const double time = run_time_s(one_job(ring_schedule(n, bytes), endpoints),
                                       leaf_spine(n, per_leaf, 1, ratio), ideal(fidelity));
        CHECK(time == Approx(2.0 * (n - 1) / n * bytes / (kBandwidth / ratio)).epsilon(kTolerance));
      }
}

TEST_CASE("a contiguous ring sends one flow through each uplink and does not notice oversubscription") {
  const double bytes = 1e9;
  for (Fidelity fidelity : kWithContention) {
    CAPTURE(name(fidelity));
    CHECK(run_time_s(one_job(ring_schedule(16, bytes), first_endpoints(16)), leaf_spine(16, 4, 1, 4.0),
                     ideal(fidelity)) == Approx(2.0 * 15 / 16 * bytes / kBandwidth).epsilon(kTolerance));
  }
}

TEST_CASE("8 channels use 8 NICs: 2 (n-1) / n S / (8 B)") {
  const double bytes = 8e8;
  for (int nodes : {2, 4})
    for (Fidelity fidelity : kAllFidelities) {
      CAPTURE(nodes, name(fidelity));
      const int n = nodes * 8;
      const double theory = 2.0 * (n - 1) / n * bytes / (8 * kBandwidth) + 2 * (n - 1) * 2 * kHopLatency;
      const Run run = one_job(ring_schedule(n, bytes), first_endpoints(n));
      CHECK(run_time_s(run, eight_nics(nodes), ideal(fidelity)) == Approx(theory).epsilon(kTolerance));
      const Run one_channel = one_job(ring_schedule(n, bytes, 1), first_endpoints(n));
      CHECK(
          run_time_s(one_channel, eight_nics(nodes), ideal(fidelity)) ==
          Approx(2.0 * (n - 1) / n * bytes / kBandwidth + 2 * (n - 1) * 2 * kHopLatency).epsilon(kTolerance));
    }
}

TEST_CASE("one server's link carries n gradients in and n weights out, k servers carry a k-th each") {
  const double bytes = 1e8;
  for (int workers : {1, 4, 16, 64})
    for (int servers : {1, 2, 4})
      for (Fidelity fidelity : kWithContention) {
        CAPTURE(workers, servers, name(fidelity));
        std::vector<int> endpoints = first_endpoints(workers + servers);
        // A worker's link carries S in each direction; the busier side determines the time.
        const double one_way = std::max(workers * bytes / servers, bytes) / kBandwidth + 2 * kHopLatency;
        CHECK(run_time_s(one_job(parameter_server(workers, servers, bytes), endpoints),
                         star(workers + servers),
                         ideal(fidelity)) == Approx(2 * one_way).epsilon(kTolerance));
      }
}

TEST_CASE("two equal flows of different latency on one link share it: both end at twice the time") {
  // One job per message, from two nodes to a third; the second route has 10 us more latency.
  ClusterParts parts = star(3);
  parts.fabric.kind = Fabric::Kind::links;
  parts.fabric.latency_s = 0;
  parts.node.nic_bandwidth = 0;
  parts.graph = {
      {"node0", "switch", 1e9, 1e-6}, {"node1", "switch", 1e9, 10e-6}, {"switch", "node2", 1e9, 0}};
  Schedule s;
  s.roles = {role("worker", {{"pair", 2}})};
  Program sender, receiver;
  sender.name = "sender";
  sender.where = {{0, 0}};
  sender.streams = receiver.streams = {"network"};
  sender.ops = {exchange("send", 0, {send(Peer::along(0, 1), 1e9)})};
  receiver.name = "receiver";
  receiver.where = {{0, 1}};
  receiver.ops = {exchange("receive", 0, {receive(Peer::along(0, -1), 1e9)})};
  s.programs = {sender, receiver};
  Run run = one_job(s, {0, 2});
  run.jobs.push_back(one_job(s, {1, 2}).jobs[0]);
  const Trace trace = simulate_in_child(run, *make_cluster(parts), ideal(Fidelity::flow));
  for (double end : trace.spans.end_s) CHECK(end == Approx(2.0).epsilon(1e-4));
}

TEST_CASE(
    "two jobs whose rings share every NIC take twice as long, on NICs of their own they do not notice") {
  const double bytes = 1e8;
  const auto both = [&](std::vector<int> a, std::vector<int> b, Fidelity fidelity) {
    Run run = one_job(ring_schedule(4, bytes), std::move(a));
    run.jobs.push_back(one_job(ring_schedule(4, bytes), std::move(b)).jobs[0]);
    return run_time_s(run, star(8), ideal(fidelity));
  };
  const double alone = 2.0 * 3 / 4 * bytes / kBandwidth;
  for (Fidelity fidelity : kWithContention) {
    CAPTURE(name(fidelity));
    CHECK(both({0, 1, 2, 3}, {0, 1, 2, 3}, fidelity) == Approx(2 * alone).epsilon(kTolerance));
    CHECK(both({0, 1, 2, 3}, {4, 5, 6, 7}, fidelity) == Approx(alone).epsilon(kTolerance));
  }
  CHECK(both({0, 1, 2, 3}, {0, 1, 2, 3}, Fidelity::analytic) == Approx(alone).epsilon(kTolerance));
}

TEST_CASE("pieces in flight hide latency alike at every fidelity") {
  // A step of k pieces c takes max(k c, c + latency); the ring's first pieces add nothing on a star.
  for (double latency_us : {10.0, 200.0})
    for (Fidelity fidelity : kAllFidelities) {
      CAPTURE(latency_us, name(fidelity));
      EngineOptions options = ideal(fidelity);
      options.chunk_bytes = 250e3;  // a 1 MB step has 4 pieces of 0.25 ms
      const double piece_s = 250e3 / kBandwidth, latency_s = latency_us * 1e-6;
      const double theory = 2 * 7 * std::max(4 * piece_s, piece_s + latency_s);
      CHECK(run_time_s(one_job(ring_schedule(8, 8e6), first_endpoints(8)), star(8, kBandwidth, latency_s / 2),
                       options) == Approx(theory).epsilon(0.02));
    }
}
