// Tests what NCCL's collectives cost in racks, over NICs without order, in long rings and under XLA.
#include <cmath>
#include <string>

#include "simulator/costs/link_uncertainty.hpp"
#include "simulator/costs/transfer.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

constexpr double kMiBytes = 1048576;

double us(const TransferCost& cost, double bandwidth) {
  return 1e6 * (cost.startup_s + cost.filling_s + cost.ramp_s + cost.steps * cost.step_latency_s +
                cost.bytes_per_edge / (cost.efficiency * bandwidth));
}

TransferShape rack(int ranks) {
  TransferShape shape;
  shape.ranks = ranks;
  shape.compute_capability = 100;
  shape.ring_bandwidth = shape.nvlink_bandwidth = 900e9;
  shape.nvlink_only = shape.rack = true;
  return shape;
}

TransferShape p4(int nodes) {
  TransferShape shape;
  shape.ranks = 8 * nodes;
  shape.nodes = nodes;
  shape.channels = 4;
  shape.compute_capability = 80;
  shape.hop_latency_s = 17.25e-6;
  shape.ring_bandwidth = nodes == 2 ? 100e9 : 50e9;
  shape.nic_share = 0.91;
  shape.nic_ordered = false;
  return shape;
}

}  // namespace

TEST_CASE("collectives in a rack cost what was measured in a GB200 NVL72") {
  // Computed by hand from nccl_rack.cpp; `measured` is what XLA prints, in microseconds.
  struct Case {
    CollectiveKind kind;
    int ranks;
    double bytes;  // all-to-all: for each pair
    std::string protocol;
    double microseconds, measured;
  };
  const Case cases[] = {
      // 9.6 + 63 x 1.37 + 63/64 MiB / (0.58 x 0.777 x 900 GB/s)
      {CollectiveKind::all_gather, 64, kMiBytes, "LL", 98.46, 99.7},
      // at least 18.3 for a call, whatever its latency; (3/4 S / 0.69 + 2.56 sqrt(S x 1 MB)) / (0.777 x 900
      // GB/s)
      {CollectiveKind::all_gather, 4, 16384, "LL128", 18.79, 17.6},
      // 13.4 + 7 x 1.65 + (7/8 S + 2.56 sqrt(S x 1 MB)) / (0.777 x 900 GB/s), S = 2 GiB
      {CollectiveKind::reduce_scatter, 8, 2048 * kMiBytes, "Simple", 2881.9, 2805},
      // 10.94 + 0.0075 x 64 + 7 x 16 KiB / 144 GB/s
      {CollectiveKind::all_to_all, 8, 16384, "LL", 12.22, 12.9},
      // 10.94 + 0.0075 x 64 + (7 S + 3.42 sqrt(7 S x 1 MB)) / (0.743 x 900 GB/s), S = 128 MiB
      {CollectiveKind::all_to_all, 8, 128 * kMiBytes, "Simple", 1573.3, 1500},
  };
  for (const Case& c : cases) {
    CAPTURE(c.ranks, c.bytes);
    const TransferCost cost = ring_cost(c.kind, c.bytes, rack(c.ranks), Protocol::nccl);
    CHECK(cost.protocol == c.protocol);
    CHECK(us(cost, 900e9) == Approx(c.microseconds).epsilon(2e-3));
    CHECK(us(cost, 900e9) == Approx(c.measured).epsilon(0.1));
  }
  // NVLS, S = 1 GiB: 21.9 + 4.96 log2(72) + (S + 6.73 sqrt(S x 1 MB)) / B, where
  // B = 0.62 (1 - 0.227/72) / (1 + 72/240) x 900 GB/s; a rack of CoreWeave's takes 3109 us.
  TransferShape all = rack(72);
  CHECK(us(nvls_cost(1024 * kMiBytes, all, Protocol::nccl), 900e9) == Approx(3076).epsilon(2e-3));
  // Boards have their own constants: 8.4 + 3 x 3.4 us at least, not 18.3.
  all = rack(4);
  all.rack = false;
  CHECK(us(ring_cost(CollectiveKind::all_gather, 8, all, Protocol::nccl), 900e9) < 10);
}

TEST_CASE("NICs without order carry Simple alone, and fill trees piece by piece") {
  // aws-samples/awsome-distributed-training, two p4de.
  struct Case {
    double bytes, microseconds, measured;
  };
  const Case cases[] = {
      // 8.4 + 2 x (7 x 4 + 14 + 2 x 17.25)
      {8, 161.4, 164.3},
      // 31 us more each way; 64 KiB / 16 pieces x (14 / 20 GB/s + 2 x 8 / 45.5 GB/s), 2 S / (0.92 x 91 GB/s)
      {65536, 229.3, 227.4},
      {kMiBytes, 317.4, 309.4},
      // pieces of 512 KiB
      {256 * kMiBytes, 7187, 7201.7},
  };
  for (const Case& c : cases) {
    CAPTURE(c.bytes);
    const TransferCost cost = tree_cost(c.bytes, p4(2), Protocol::nccl);
    CHECK(cost.protocol == "Simple");
    CHECK(us(cost, 100e9) == Approx(c.microseconds).epsilon(2e-3));
    CHECK(us(cost, 100e9) == Approx(c.measured).epsilon(0.04));
  }
  for (const double bytes : {8.0, 65536.0, 256 * kMiBytes})
    CHECK(ring_cost(CollectiveKind::all_reduce, bytes, p4(4), Protocol::nccl).protocol == "Simple");
  TransferShape ordered = p4(4);
  ordered.nic_ordered = true;
  CHECK(ring_cost(CollectiveKind::all_reduce, 8, ordered, Protocol::nccl).protocol == "LL");
  // The order of NICs is of no account inside a node.
  TransferShape inside = p4(2);
  inside.nodes = 1;
  CHECK(ring_cost(CollectiveKind::all_reduce, 8, inside, Protocol::nccl).protocol == "LL");
}

TEST_CASE("rings of H100 lose bandwidth with each doubling of the nodes") {
  const auto efficiency = [](int nodes, int each, int capability) {
    TransferShape shape;
    shape.ranks = nodes * each;
    shape.nodes = nodes;
    shape.channels = 8;
    shape.compute_capability = capability;
    shape.ring_bandwidth = 400e9;
    return ring_cost(CollectiveKind::reduce_scatter, 131072 * kMiBytes, shape, Protocol::nccl).efficiency;
  };
  CHECK(efficiency(2, 8, 90) == Approx(0.96));
  CHECK(efficiency(4, 8, 90) == Approx(0.96 / 1.044));
  CHECK(efficiency(128, 8, 90) == Approx(0.96 / (1 + 6 * 0.044)));
  CHECK(efficiency(128, 1, 90) == Approx(0.96));  // nothing was measured of one GPU a node,
  CHECK(efficiency(128, 8, 80) == Approx(0.96));  // nor of A100
}

TEST_CASE("one protocol of NCCL's can be asked for") {
  for (int only = 0; only < 3; ++only) {
    Protocol protocol;
    protocol.only = only;
    const std::string_view names[] = {"LL", "LL128", "Simple"};
    CHECK(ring_cost(CollectiveKind::all_reduce, 64 * kMiBytes, rack(8), protocol).protocol == names[only]);
    CHECK(tree_cost(64 * kMiBytes, rack(8), protocol).protocol == names[only]);
    TransferShape p100 = rack(8);
    p100.compute_capability = 60;
    p100.rack = false;
    CHECK((ring_cost(CollectiveKind::all_reduce, 8, p100, protocol).protocol == names[only]) == (only != 1));
  }
}

TEST_CASE("XLA's calls take longer on boards, and as long in racks") {
  Protocol xla;
  xla.software = Protocol::xla;
  CHECK(us(ring_cost(CollectiveKind::all_gather, kMiBytes, rack(8), xla), 900e9) ==
        us(ring_cost(CollectiveKind::all_gather, kMiBytes, rack(8), Protocol::nccl), 900e9));
  TransferShape board = rack(2);
  board.rack = false;
  const TransferCost with = ring_cost(CollectiveKind::all_gather, 1024 * kMiBytes, board, xla),
                     without = ring_cost(CollectiveKind::all_gather, 1024 * kMiBytes, board, Protocol::nccl);
  CHECK(with.startup_s == Approx(without.startup_s + 12e-6));
  CHECK(with.efficiency == Approx(0.74 * without.efficiency));
}
