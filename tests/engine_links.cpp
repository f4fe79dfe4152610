// Tests transfers over TCP and over measured links against formulas, to 0.1 %, at every fidelity.
#include <cmath>
#include <string>

#include "simulator/costs/link_profile.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kB = 1e9, kRouteLatency = 2e-6;  // of star_of(): bandwidth of a link, latency of a route

SizeRange range_of(double from_bytes, double latency_s, double bandwidth, double efficiency) {
  SizeRange r;
  r.from_bytes = from_bytes;
  r.latency_s.value = latency_s;
  r.bandwidth.value = bandwidth;
  r.efficiency.value = efficiency;
  return r;
}

// Returns a measured protocol: between nodes 20 us and 0.4 GB/s, from 10 kB on 60 us and 0.9 of the link;
// inside nodes 3 us and 0.8 of the link.
Protocol measured() {
  LinkProfile profile;
  profile.curves.resize(2);
  profile.curves[0].ranges = {range_of(0, 20e-6, 0.4e9, 0), range_of(1e4, 60e-6, 0, 0.9)};
  profile.curves[1].reach = Reach::in_node;
  profile.curves[1].ranges = {range_of(0, 3e-6, 0, 0.8)};
  Protocol protocol = Protocol::measured;
  protocol.links = std::make_shared<LinkProfile>(profile);
  return protocol;
}

Protocol tcp(double frame_overhead_bytes) {
  Protocol protocol = Protocol::tcp;
  protocol.frame_overhead_bytes = frame_overhead_bytes;
  return protocol;
}

// Returns the seconds of one message of `bytes` on the star.
double message_s(const Protocol& protocol, double bytes) {
  if (protocol.kind == Protocol::tcp)
    return kRouteLatency + bytes * (1500 + protocol.frame_overhead_bytes) / 1448 / kB;
  return bytes < 1e4 ? kRouteLatency + 20e-6 + bytes / 0.4e9 : kRouteLatency + 60e-6 + bytes / (0.9 * kB);
}

double time_s(const Schedule& schedule, const ClusterParts& parts, const Protocol& protocol,
              Fidelity fidelity, double chunk_bytes = 0) {
  EngineOptions options;
  options.fidelity = fidelity;
  options.protocol = protocol;
  options.chunk_bytes = chunk_bytes;
  return run_time_s(one_job(schedule, all_devices(*make_cluster(parts))), parts, options);
}

Schedule collective(int n, double bytes, CollectiveKind kind, Algorithm algorithm = Algorithm::ring) {
  Schedule s = ring_schedule(n, bytes);
  s.programs[0].ops[0].collective.kind = kind;
  s.programs[0].ops[0].collective.algorithm = algorithm;
  return s;
}

Schedule one_message(double bytes) {
  Schedule s;
  s.roles = {role("sender", {{"data", 1}}), role("receiver", {{"data", 1}})};
  Program sender, receiver;
  sender.name = "sender";
  receiver.name = "receiver";
  receiver.role = 1;
  sender.streams = receiver.streams = {"network"};
  sender.ops = {exchange("send", 0, {send(Peer::member(1, 0.0), bytes)})};
  receiver.ops = {exchange("receive", 0, {receive(Peer::member(0, 0.0), bytes)})};
  s.programs = {sender, receiver};
  return s;
}

}  // namespace

TEST_CASE("a ring on a star takes 2 (n-1) messages of S / n, on TCP and on measured links", "[release]") {
  for (const Protocol& protocol : {tcp(38), tcp(14), measured()})
    for (const int n : {2, 4, 8, 16})
      for (const double bytes : {64.0, 4e4, 1e6, 1e8})
        for (const Fidelity fidelity : kAllFidelities) {
          CAPTURE(static_cast<int>(protocol.kind), n, bytes, name(fidelity));
          CHECK(time_s(collective(n, bytes, CollectiveKind::all_reduce), star_of(n), protocol, fidelity) ==
                Approx(2 * (n - 1) * message_s(protocol, bytes / n)).epsilon(kTolerance));
          CHECK(time_s(collective(n, bytes, CollectiveKind::all_gather), star_of(n), protocol, fidelity) ==
                Approx((n - 1) * message_s(protocol, bytes / n)).epsilon(kTolerance));
        }
}

TEST_CASE("halving and doubling takes its messages of S/2, S/4, ..., each as long as its size does") {
  for (const Protocol& protocol : {tcp(38), measured()})
    for (const int n : {2, 4, 16})
      for (const double bytes : {64.0, 6e4, 1e6})
        for (const Fidelity fidelity : kAllFidelities) {
          CAPTURE(static_cast<int>(protocol.kind), n, bytes, name(fidelity));
          double theory = 0;
          for (double part = bytes / 2; part > bytes / n * 0.75; part /= 2)
            theory += 2 * message_s(protocol, part);
          CHECK(time_s(collective(n, bytes, CollectiveKind::all_reduce, Algorithm::halving_doubling),
                       star_of(n), protocol, fidelity) == Approx(theory).epsilon(kTolerance));
        }
}

TEST_CASE("recursive doubling takes log2(n) messages of the entire buffer, each as long as its size does") {
  for (const Protocol& protocol : {tcp(38), measured()})
    for (const int n : {2, 4, 16})
      for (const double bytes : {64.0, 6e4, 1e6})
        for (const Fidelity fidelity : kAllFidelities) {
          CAPTURE(static_cast<int>(protocol.kind), n, bytes, name(fidelity));
          CHECK(time_s(collective(n, bytes, CollectiveKind::all_reduce, Algorithm::recursive_doubling),
                       star_of(n), protocol,
                       fidelity) == Approx(std::log2(n) * message_s(protocol, bytes)).epsilon(kTolerance));
        }
}

TEST_CASE("a tree pays a message's latency on every edge of its way") {
  // Two members: on each tree one edge per direction, with half of the link and half of the buffer. Four
  // members: two levels, where the second starts once the first has delivered its only piece: (2 d - 1) S / B
  // for n = 2^d.
  struct Case {
    int n;
    double bytes, theory_s;
  };
  const Case cases[] = {{2, 64, 32 / 0.4e9 + 2 * (kRouteLatency + 20e-6)},
                        {2, 8e5, 8e5 / (0.9 * kB) + 2 * (kRouteLatency + 60e-6)},
                        {4, 64, 3 * 64 / kB + 4 * (kRouteLatency + 20e-6)},
                        {4, 8e5, 3 * 8e5 / (0.9 * kB) + 4 * (kRouteLatency + 60e-6)}};
  for (const Case& c : cases)
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::analytic, Fidelity::automatic}) {
      CAPTURE(c.n, c.bytes, name(fidelity));
      CHECK(time_s(collective(c.n, c.bytes, CollectiveKind::all_reduce, Algorithm::tree), star_of(c.n),
                   measured(), fidelity) == Approx(c.theory_s).epsilon(kTolerance));
    }
  // Simulated message by message it takes the same time, level by level.
  CHECK(time_s(collective(4, 8e5, CollectiveKind::all_reduce, Algorithm::tree), star_of(4), measured(),
               Fidelity::chunk) ==
        Approx(3 * 8e5 / (0.9 * kB) + 4 * (kRouteLatency + 60e-6)).epsilon(kTolerance));
}

TEST_CASE("a tree in k pieces takes as long as its messages one by one") {
  // The first piece of S / 2 takes (2 d - 1) edges at half of the link's rate; the other k - 1 pieces follow
  // at a quarter.
  for (const auto& [n, levels] : {std::pair(4, 2), {8, 3}, {16, 4}})
    for (const double pieces : {1, 2, 4, 16}) {
      CAPTURE(n, pieces);
      const double bytes = 2 * pieces * 524288, piece_s = 524288 / (tcp_efficiency(38) * kB);
      const double theory = ((2 * levels - 1) * 2 + (pieces - 1) * 4) * piece_s + 2 * levels * kRouteLatency;
      const auto time = [bytes, ranks = n](Fidelity fidelity) {
        return time_s(collective(ranks, bytes, CollectiveKind::all_reduce, Algorithm::tree), star_of(ranks),
                      tcp(38), fidelity);
      };
      CHECK(time(Fidelity::flow) == Approx(theory).epsilon(kTolerance));
      CHECK(time(Fidelity::analytic) == Approx(theory).epsilon(kTolerance));
      // Where the first pieces have an edge to themselves, messages are up to one piece's time faster.
      CHECK(time(Fidelity::chunk) < theory * (1 + kTolerance));
      CHECK(time(Fidelity::chunk) > theory - 2 * piece_s);
    }
}

TEST_CASE("a tree over nodes waits for its first piece on each edge at that edge's own rate") {
  // Edges inside nodes are many times as fast as those between nodes and hardly matter.
  for (const int nodes : {2, 4})
    for (const double bytes : {4e6, 16e6, 256e6}) {
      CAPTURE(nodes, bytes);
      const auto time = [&](Fidelity fidelity) {
        return time_s(collective(8 * nodes, bytes, CollectiveKind::all_reduce, Algorithm::tree),
                      dgx_like(nodes), tcp(38), fidelity);
      };
      CHECK(time(Fidelity::flow) == Approx(time(Fidelity::chunk)).epsilon(0.16));
    }
}

TEST_CASE("hierarchical: inside nodes what is measured there, between them what is measured there") {
  // Rings of 8 inside nodes and of `nodes` between them, on an eighth of the buffer; a NIC carries two of
  // these.
  const double bytes = 8e6;
  for (const int nodes : {2, 4})
    for (const Fidelity fidelity : kAllFidelities) {
      CAPTURE(nodes, name(fidelity));
      const double inside_s = 7 * (bytes / 8 / (0.8 * 12e9) + 3e-6 + 2 * 0.5e-6);
      const double eighth = bytes / 8,
                   between_s = 2 * (nodes - 1) * (eighth / nodes / (0.9 * kB / 2) + 60e-6 + kRouteLatency);
      CHECK(time_s(collective(8 * nodes, bytes, CollectiveKind::all_reduce, Algorithm::hierarchical),
                   dgx_like(nodes), measured(), fidelity) == Approx(2 * inside_s + between_s).epsilon(0.01));
    }
}

TEST_CASE("a message takes its latency and its bytes at the efficiency of its size") {
  for (const Protocol& protocol : {tcp(38), tcp(14), measured()})
    for (const double bytes : {64.0, 9999.0, 10000.0, 1e8})
      for (const Fidelity fidelity : kAllFidelities) {
        CAPTURE(static_cast<int>(protocol.kind), bytes, name(fidelity));
        CHECK(time_s(one_message(bytes), star_of(2), protocol, fidelity) ==
              Approx(message_s(protocol, bytes)).epsilon(1e-6));
      }
}

TEST_CASE("pieces of a step cost what messages of their size do") {
  // Pieces of 8 kB: 20 us and 0.4 GB/s. With 20 pieces per step, the others hide all latency; with 2, the
  // other hides part of it.
  for (const Fidelity fidelity : kAllFidelities) {
    CAPTURE(name(fidelity));
    const double piece_s = 8e3 / 0.4e9, latency_s = 20e-6 + kRouteLatency;
    const double many_s =
        time_s(collective(4, 640e3, CollectiveKind::all_reduce), star_of(4), measured(), fidelity, 8e3);
    const double two_s =
        time_s(collective(4, 64e3, CollectiveKind::all_reduce), star_of(4), measured(), fidelity, 8e3);
    // With messages, the latency of the first one adds to the total.
    const double first_s = fidelity == Fidelity::chunk ? latency_s : 0;
    CHECK(many_s == Approx(6 * 20 * piece_s + first_s).epsilon(kTolerance));
    CHECK(two_s >= 6 * (piece_s + latency_s) * (1 - kTolerance));
    CHECK(two_s <= (6 * (piece_s + latency_s) + first_s) * (1 + kTolerance));
  }
}

TEST_CASE("folded and whole agree on measured links") {
  for (const Algorithm a :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling, Algorithm::hierarchical})
    for (const ClusterParts& parts : {star_of(8), dgx_like(2)}) {
      CAPTURE(parts.name, static_cast<int>(a));
      const auto cluster = make_cluster(parts);
      const Run run =
          one_job(collective(cluster->devices(), 1e6, CollectiveKind::all_reduce, a), all_devices(*cluster));
      EngineOptions options;
      options.fidelity = Fidelity::flow;
      options.protocol = measured();
      const Trace folded = simulate_in_child(run, *cluster, options);
      options.fold = false;
      CHECK(worst_difference(folded, simulate_in_child(run, *cluster, options)) < 1e-9);
    }
}
