// Tests collectives and messages against the formulas of their algorithms and against NCCL's own cost model.
#include <string>

#include "simulator/costs/transfer.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

constexpr double kMebibyte = 1048576;

double seconds(const TransferCost& cost, double bandwidth) {
  return cost.startup_s + cost.steps * cost.step_latency_s +
         cost.bytes_per_edge / (cost.efficiency * bandwidth);
}

TransferShape shape(int ranks, int nodes, double bandwidth, int capability, double hop_latency_s = 0,
                    int channels = 1) {
  TransferShape s;
  s.channels = channels;
  s.ranks = ranks;
  s.nodes = nodes;
  s.ring_bandwidth = bandwidth;
  s.compute_capability = capability;
  s.hop_latency_s = hop_latency_s;
  return s;
}

}  // namespace

TEST_CASE("ideal rings have the steps and bytes of Thakur et al. (2005)") {
  struct Case {
    CollectiveKind kind;
    int ranks;
    double bytes;
    int steps;
    double bytes_per_edge;
  };
  const Case cases[] = {
      {CollectiveKind::all_reduce, 2, 8e6, 2, 8e6},  // 2(n-1)/n S
      {CollectiveKind::all_reduce, 8, 8e6, 14, 14e6},
      {CollectiveKind::reduce_scatter, 8, 8e6, 7, 7e6},  // (n-1)/n S
      {CollectiveKind::all_gather, 4, 8e6, 3, 6e6},
      {CollectiveKind::all_to_all, 8, 1e6, 7, 7e6},  // S to each of n-1 members
      {CollectiveKind::broadcast, 8, 8e6, 7, 8e6},   // S
      {CollectiveKind::reduce, 4, 8e6, 3, 8e6},
      {CollectiveKind::all_reduce, 1, 8e6, 0, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.ranks, c.bytes);
    const TransferCost cost = ring_cost(c.kind, c.bytes, shape(c.ranks, 1, 1e9, 80, 5e-6), Protocol::ideal);
    CHECK(cost.steps == c.steps);
    CHECK(cost.bytes_per_edge == Approx(c.bytes_per_edge).epsilon(1e-12));
    CHECK(cost.startup_s == 0);
    CHECK(cost.efficiency == 1);
    CHECK(cost.step_latency_s == (c.ranks > 1 ? 5e-6 : 0));
    CHECK(cost.protocol.empty());
  }
}

TEST_CASE("an all-reduce costs what NCCL predicts") {
  // Computed by hand from the constants of NCCL 2.30.7, src/graph/tuning.cc.
  struct Case {
    std::string what;
    TransferShape shape;
    double bytes;
    std::string protocol;
    double microseconds;
  };
  const Case cases[] = {
      // 6.6 + 14 x 0.6 + 1.75 MiB / 141 GB/s, and the same with twice the bytes: 28.0 and 41.0 us; nccl-tests
      // measured 27.4 and 42.2 us on a DGX H100.
      {"DGX H100, 1 MiB", shape(8, 1, 360e9, 90), kMebibyte, "LL", 28.01},
      {"DGX H100, 2 MiB", shape(8, 1, 360e9, 90), 2 * kMebibyte, "LL", 41.03},
      {"DGX H100, 8 B", shape(8, 1, 360e9, 90), 8, "LL", 15.0},
      // 14 + 14 x 1.9 + 1.75 x 8 MiB / (0.92 x 240 GB/s)
      {"DGX A100, 8 MiB", shape(8, 1, 240e9, 80), 8 * kMebibyte, "LL128", 40.6 + 66.49},
      // 8.4 + 14 x 3.4 + 1.75 x 256 MiB / 240 GB/s
      {"DGX A100, 256 MiB", shape(8, 1, 240e9, 80), 256 * kMebibyte, "Simple", 56.0 + 1957.34},
      // P100 has no LL128: 56 + 1.75 x 8 MiB / 72 GB/s
      {"P100, 8 MiB", shape(8, 1, 72e9, 60), 8 * kMebibyte, "Simple", 56.0 + 203.89},
      // Two nodes, 1 us from NIC to NIC: 6.6 + 28 x 1.0 + 2 x (2.7 + 1)
      {"2 x DGX A100, 8 B", shape(16, 2, 96e9, 80, 1e-6), 8, "LL", 42.0},
      // Eight NICs of 25 GB/s: 14 + 28 x 1.9 + 2 x (4 + 1) + 1.875 x 8 MiB / (8 x 20 GB/s)
      {"2 x DGX A100, 8 MiB", shape(16, 2, 200e9, 80, 1e-6, 8), 8 * kMebibyte, "LL128", 77.2 + 98.30},
      // 1.4 x (8.4 + 28 x 3.4 + 2 x (14 + 2 x 1)) + 1.875 GiB / (0.96 x 96 GB/s)
      {"2 x DGX A100, 1 GiB", shape(16, 2, 96e9, 80, 1e-6), 1024 * kMebibyte, "Simple", 189.84 + 21845.33},
      // before Ampere the factor is 1.9 instead of 1.4
      {"2 x DGX-1 V100, 1 GiB", shape(16, 2, 48e9, 70, 1e-6), 1024 * kMebibyte, "Simple", 257.64 + 43690.67},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TransferCost cost = ring_cost(CollectiveKind::all_reduce, c.bytes, c.shape, Protocol::nccl);
    CHECK(cost.protocol == c.protocol);
    CHECK(1e6 * seconds(cost, c.shape.ring_bandwidth) == Approx(c.microseconds).epsilon(1e-3));
  }
}

TEST_CASE("large all-reduces of eight A100 reach the measured bus bandwidth") {
  // Published nccl-tests runs reach 238 GB/s.
  for (double mib : {256.0, 512.0, 1024.0, 4096.0}) {
    CAPTURE(mib);
    const TransferShape s = shape(8, 1, 240e9, 80);
    const TransferCost cost = ring_cost(CollectiveKind::all_reduce, mib * kMebibyte, s, Protocol::nccl);
    CHECK(cost.bytes_per_edge / seconds(cost, s.ring_bandwidth) == Approx(238e9).epsilon(0.06));
  }
}

TEST_CASE("what channels reach on NVLinks and NICs, and how they ramp up") {
  // Computed by hand from nccl_constants.hpp; bytes in MiB, latencies as above.
  struct Case {
    std::string what;
    TransferShape shape;
    bool all_reduce;
    double mib;
    std::string protocol;
    double microseconds;
  };
  const auto nvlink = [](TransferShape s, double bandwidth) {
    s.nvlink_only = s.nodes == 1;
    s.nvlink_bandwidth = bandwidth;
    return s;
  };
  TransferShape relayed = nvlink(shape(5, 1, 50e9, 70, 0, 2), 50e9);
  relayed.relayed = true;
  const Case cases[] = {
      // 8.4 + 14 x 3.4 + (1.75 S (1 + 0.372/14) + 2.19 sqrt(S x 1 MB)) / (0.817 x 300 GB/s), S = 1 GiB
      {"8 A100", nvlink(shape(8, 1, 300e9, 80), 300e9), true, 1024, "Simple", 56 + 7870.14 + 292.78},
      // two GPUs: 8.4 + 2 x 3.4 + (S (1 + 0.372/2) + 2.19 sqrt(S x 1 MB)) / (0.817 x 300 GB/s)
      {"2 A100", nvlink(shape(2, 1, 300e9, 80), 300e9), true, 1024, "Simple", 15.2 + 5195.74 + 292.78},
      // half of the steps and of the ramp; no sum is stored and forwarded
      {"8 A100, all-gather", nvlink(shape(8, 1, 300e9, 80), 300e9), false, 1024, "Simple",
       8.4 + 23.8 + 3833.11 + 146.39},
      // six rings of 25 GB/s: 56 + 1.75 S / (0.884 x 150 GB/s)
      {"8 V100", nvlink(shape(8, 1, 150e9, 70, 0, 6), 150e9), true, 1024, "Simple", 56 + 14170.8},
      // two rings with a relay: 8.4 + 8 x 3.4 + 1.6 S / (0.84 x 0.884 x 50 GB/s)
      {"5 V100", relayed, true, 1024, "Simple", 35.6 + 46271.8},
      // 0.96 of 400 GB/s (NICs) is more than 0.828 of 450 GB/s (NVLink), so NVLink is the limit
      {"16 H100, NVLink bounds", nvlink(shape(16, 2, 400e9, 90, 0, 8), 450e9), true, 4096, "Simple",
       1.4 * (8.4 + 28 * 3.4 + 2 * 14) + 21613.6},
      {"16 A100, NICs bound", nvlink(shape(16, 2, 200e9, 80, 0, 8), 300e9), true, 4096, "Simple",
       1.4 * (8.4 + 28 * 3.4 + 2 * 14) + 41943.0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TransferCost cost =
        ring_cost(c.all_reduce ? CollectiveKind::all_reduce : CollectiveKind::all_gather, c.mib * kMebibyte,
                  c.shape, Protocol::nccl);
    CHECK(cost.protocol == c.protocol);
    CHECK(1e6 * (seconds(cost, c.shape.ring_bandwidth) + cost.ramp_s) ==
          Approx(c.microseconds).epsilon(1e-4));
  }
}

TEST_CASE("NVLS costs what was measured in one node, and the slower of nodes and network over several") {
  TransferShape node = shape(8, 1, 450e9, 90);
  node.nvlink_only = true;
  node.nvlink_bandwidth = 450e9;
  // 25 us + (S + 2.49 sqrt(S x 1 MB)) / (0.681 x 450 GB/s x (1 - 0.62 / 8)); nccl-tests measured 123.8,
  // 1112.5 and 31,307 us on a DGX H100.
  for (const auto& [mib, microseconds] : {std::pair{16.0, 120.43}, {256.0, 1118.8}, {8192.0, 31192.0}}) {
    CAPTURE(mib);
    const TransferCost cost = nvls_cost(mib * kMebibyte, node, Protocol::nccl);
    CHECK(cost.protocol == "Simple");
    CHECK(1e6 * (seconds(cost, 450e9) + cost.ramp_s) == Approx(microseconds).epsilon(2e-3));
  }
  // Twelve nodes: 25 + 2 x 3 x (20.9 + 0.5) us; the network, at 0.96 x 200 GB/s, takes longer than the nodes.
  TransferShape nodes = shape(96, 12, 200e9, 90, 0.5e-6, 8);
  nodes.nvlink_bandwidth = 450e9;
  const TransferCost cost = nvls_cost(1024 * kMebibyte, nodes, Protocol::nccl);
  CHECK(cost.ramp_s == 0);
  CHECK(1e6 * seconds(cost, 200e9) == Approx(25 + 6 * 21.4 + 5592.4).epsilon(1e-4));
  // Without NCCL: the links' bandwidth and the route's latency.
  const TransferCost ideal = nvls_cost(1e9, shape(8, 1, 450e9, 90, 1e-6), Protocol::ideal);
  CHECK(seconds(ideal, 450e9) == Approx(1e-6 + 1 / 450.0));
}

TEST_CASE("CollNet costs what NCCL counts with") {
  // 16 nodes of 8 devices: DGX A100, whose devices' NVLinks carry 2 x 7/8 of the buffer, and DGX H100; nodes
  // of one A100.
  TransferShape ampere = shape(128, 16, 300e9 / 1.75, 80, 0.5e-6),
                hopper = shape(128, 16, 450e9 / 1.75, 90, 0.5e-6), alone = shape(16, 16, 25e9, 80, 0.5e-6);
  ampere.nvlink_bandwidth = 300e9;
  hopper.nvlink_bandwidth = 450e9;
  const struct {
    const TransferShape& shape;
    bool direct;
    double latency_us, bandwidth;
  } cases[] = {{ampere, false, 2 * 7 * 2.8 + 30 + 1, 0.5 * 0.817 * 300e9},
               {ampere, true, 2 * (3.7 + 7 * 0.4) + 31 + 1, 0.5 * 0.817 * 300e9},
               {hopper, false, 2 * 7 * 2.8 + 30 + 1, 0.5 * 0.828 * 450e9},
               {hopper, true, 2 * (3.7 + 7 * 0.4) + 31 + 1, 0.5 * 0.828 * 450e9 * 0.85},
               {alone, false, 14 + 1, 0.96 * 25e9},
               {alone, true, 14 + 1, 0.96 * 25e9}};
  for (const auto& c : cases) {
    CAPTURE(c.direct, c.latency_us, c.bandwidth);
    for (const double bytes : {8.0, 1e6, 1e9}) {
      const TransferCost cost = collnet_cost(bytes, c.shape, Protocol::nccl, c.direct);
      CHECK(cost.protocol == "Simple");
      CHECK(seconds(cost, c.shape.ring_bandwidth) == Approx(1e-6 * c.latency_us + bytes / c.bandwidth));
    }
  }
  // Without NCCL: the links' bandwidth and the route's latency.
  CHECK(seconds(collnet_cost(1e9, alone, Protocol::ideal, false), 25e9) == Approx(0.5e-6 + 1 / 25.0));
}

TEST_CASE("a protocol is chosen for every size, and more bytes never take less time") {
  for (int capability : {60, 70, 80, 90, 100})
    for (int nodes : {1, 2, 4})
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                        CollectiveKind::reduce_scatter, CollectiveKind::broadcast}) {
        const TransferShape s = shape(8 * nodes, nodes, 100e9, capability, 1e-6);
        double before_s = 0;
        std::string_view last;
        // Starts at 64 bytes per rank and channel, where NCCL's factor for Simple rings no longer changes.
        for (double bytes = 4096; bytes <= 16e9; bytes *= 2) {
          CAPTURE(capability, nodes, bytes);
          const TransferCost cost = ring_cost(kind, bytes, s, Protocol::nccl);
          const double now_s = seconds(cost, s.ring_bandwidth);
          CHECK(now_s > before_s);
          CHECK_FALSE((capability < 70 && cost.protocol == "LL128"));
          before_s = now_s;
          last = cost.protocol;
        }
        CHECK(last == "Simple");
        CHECK(ring_cost(kind, 8, s, Protocol::nccl).protocol == "LL");
      }
}

TEST_CASE("all-to-all under NCCL is made of Simple sends") {
  // 16 ranks on 2 nodes: 7 steps stay inside a node (3.4 us), 8 cross (14 + 2 x 1 us).
  const TransferCost cost =
      ring_cost(CollectiveKind::all_to_all, 1e6, shape(16, 2, 96e9, 80, 1e-6), Protocol::nccl);
  CHECK(cost.protocol == "Simple");
  CHECK(cost.steps == 15);
  CHECK(cost.bytes_per_edge == 15e6);
  CHECK(cost.startup_s == Approx(8.4e-6));
  CHECK(15 * cost.step_latency_s == Approx((7 * 3.4 + 8 * 16) * 1e-6));
}

TEST_CASE("a message is one step") {
  struct Case {
    std::string what;
    TransferShape shape;
    Protocol protocol;
    double startup_us, step_us, efficiency;
  };
  TransferShape nvlink = shape(2, 1, 300e9, 80, 1e-6);
  nvlink.nvlink_only = true;
  nvlink.nvlink_bandwidth = 300e9;
  const Case cases[] = {
      {"ideal", shape(2, 2, 25e9, 80, 3e-6), Protocol::ideal, 0, 3, 1},
      {"NCCL over NVLink", nvlink, Protocol::nccl, 8.4, 3.4, 0.817},
      {"NCCL over PCIe", shape(2, 1, 31.5e9, 80, 1e-6), Protocol::nccl, 8.4, 3.4, 1},
      {"NCCL between nodes", shape(2, 2, 25e9, 80, 3e-6), Protocol::nccl, 8.4, 20, 0.96},
      {"processors", shape(2, 2, 25e9, 0, 3e-6), Protocol::nccl, 0, 3, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TransferCost cost = message_cost(1e6, c.shape, c.protocol);
    CHECK(cost.steps == 1);
    CHECK(cost.bytes_per_edge == 1e6);
    CHECK(cost.efficiency == Approx(c.efficiency));
    CHECK(1e6 * cost.startup_s == Approx(c.startup_us).margin(1e-9));
    CHECK(1e6 * cost.step_latency_s == Approx(c.step_us).margin(1e-9));
  }
}

TEST_CASE("processors do not speak NCCL") {
  const TransferShape s = shape(8, 8, 1.25e9, 0, 10e-6);
  const TransferCost nccl = ring_cost(CollectiveKind::all_reduce, 1e6, s, Protocol::nccl);
  const TransferCost ideal = ring_cost(CollectiveKind::all_reduce, 1e6, s, Protocol::ideal);
  CHECK(nccl.startup_s == ideal.startup_s);
  CHECK(nccl.step_latency_s == 10e-6);
  CHECK(nccl.efficiency == 1);
  CHECK(nccl.protocol.empty());
}

TEST_CASE("an all-reduce over trees costs what NCCL predicts") {
  // Computed by hand from the constants of NCCL 2.30.7, src/graph/tuning.cc.
  struct Case {
    std::string what;
    TransferShape shape;
    double bytes;
    std::string protocol;
    double microseconds;
  };
  const Case cases[] = {
      // 6.8 + 2 x 7 x 0.6
      {"DGX A100, 8 B", shape(8, 1, 240e9, 80), 8, "LL", 15.2},
      // 14 + 14 x 1.25 + 2 x 8 MiB / (0.92 x 240 GB/s x 7/9 x 0.9)
      {"DGX A100, 8 MiB", shape(8, 1, 240e9, 80), 8 * kMebibyte, "LL128", 31.5 + 108.55},
      // 8.4 + 14 x 4.0 + 2 x 1 GiB / (0.92 x 240 GB/s)
      {"DGX A100, 1 GiB", shape(8, 1, 240e9, 80), 1024 * kMebibyte, "Simple", 64.4 + 9725.9},
      // Two nodes, 1 us from NIC to NIC: 6.8 + 2 x (7 x 0.6 + 5 + 1)
      {"2 x DGX A100, 8 B", shape(16, 2, 192e9, 80, 1e-6, 8), 8, "LL", 27.2},
      // Sixteen nodes, 1 GiB: 8.4 + 2 x (7 x 4 + 4 x (14 + 2)) + 2 GiB / (8 x 17.8 GB/s)
      {"16 x DGX A100, 1 GiB", shape(128, 16, 192e9, 80, 1e-6, 8), 1024 * kMebibyte, "Simple",
       192.4 + 15080.7},
      // One GPU per node: 8.4 + 2 x 3 x (14 + 2) + 2 GiB / (min(0.92 x 25, 17.8) GB/s x 0.85)
      {"8 x A100, 1 GiB", shape(8, 8, 25e9, 80, 1e-6, 1), 1024 * kMebibyte, "Simple", 104.4 + 141936},
      // 6.8 + 2 x 7 x 0.6 + 2 x 64 KiB / (0.92 x 360 GB/s / 3.8 x 0.6)
      {"DGX H100, 64 KiB", shape(8, 1, 360e9, 90), 65536, "LL", 15.2 + 2.506},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const TransferCost cost = tree_cost(c.bytes, c.shape, Protocol::nccl);
    CHECK(cost.protocol == c.protocol);
    CHECK(1e6 * seconds(cost, c.shape.ring_bandwidth) == Approx(c.microseconds).epsilon(1e-3));
  }
}

TEST_CASE("ideal trees take two buffers' time and the way up and down") {
  TransferShape s = shape(8, 8, 25e9, 80);
  s.tree_latency_s = 12e-6;
  CHECK(seconds(tree_cost(1e9, s, Protocol::ideal), 25e9) == Approx(2e9 / 25e9 + 12e-6));
  s.compute_capability = 0;  // processors do not use NCCL
  CHECK(seconds(tree_cost(1e9, s, Protocol::nccl), 25e9) == Approx(2e9 / 25e9 + 12e-6));
  s.ranks = 1;
  CHECK(seconds(tree_cost(1e9, s, Protocol::nccl), 25e9) == 0);
}
