// Tests the capacity that collectives leave to kernels: the formulas by hand, and published times of kernels
// during collectives.
#include "simulator/costs/compute.hpp"
#include "simulator/costs/interference.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

Collective collective_of(CollectiveKind kind, Algorithm algorithm = Algorithm::ring,
                         bool copy_engines = false) {
  Collective c;
  c.kind = kind;
  c.algorithm = algorithm;
  c.copy_engines = copy_engines;
  return c;
}

// Returns the shape of a transfer over NVLink, and between nodes over NICs of `nic_bandwidth` bytes/s.
TransferShape shape_of(int capability, int ranks, int nodes, int nics, double nic_bandwidth = 25e9) {
  TransferShape shape;
  shape.compute_capability = capability;
  shape.ranks = ranks;
  shape.nodes = nodes;
  shape.channels = nics;
  shape.nvlink_only = nodes == 1;
  shape.ring_bandwidth = nics * nic_bandwidth;
  return shape;
}

TransferShape over_pcie(TransferShape shape) {
  shape.nvlink_only = false;
  return shape;
}

Kernel product(double m, double n, double k) {
  Kernel kernel;
  kernel.kind = Kernel::Kind::gemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  kernel.bytes = 2 * (m * k + k * n + m * n);
  return kernel;
}

}  // namespace

TEST_CASE(
    "a collective keeps a thread block for each channel busy, and moves what its ring stores and reads") {
  struct Case {
    const char* what;
    Collective collective;
    TransferShape shape;
    double bytes;
    DeviceLoad expected;  // if it takes 0.01 s
  };
  using enum CollectiveKind;
  const Case cases[] = {
      // 3 passes over 2 (n-1)/n of the bytes
      {"eight A100", collective_of(all_reduce), shape_of(80, 8, 1, 8), 8e8, {24, 3 * 2 * 7e8 / 0.01}},
      {"four V100", collective_of(all_reduce), shape_of(70, 4, 1, 4), 4e8, {12, 3 * 2 * 3e8 / 0.01}},
      {"gathers and scatters move half",
       collective_of(all_gather),
       shape_of(90, 8, 1, 8),
       8e8,
       {24, 3 * 7e8 / 0.01}},
      {"", collective_of(reduce_scatter), shape_of(90, 8, 1, 8), 8e8, {24, 3 * 7e8 / 0.01}},
      {"a chain passes the whole buffer on",
       collective_of(broadcast),
       shape_of(80, 8, 1, 8),
       1e8,
       {24, 3e8 / 0.01}},
      // to each of 7 other ranks
      {"messages", collective_of(all_to_all), shape_of(80, 8, 1, 8), 1e7, {24, 4 * 7e7 / 0.01}},
      // twice the rings (one per NIC, or two per NIC of 400 Gb/s), up to 16
      {"8 NICs of 200 Gb/s", collective_of(all_gather), shape_of(80, 16, 2, 8), 16e8, {16, 3 * 15e8 / 0.01}},
      {"8 of 400 Gb/s", collective_of(all_gather), shape_of(90, 16, 2, 8, 50e9), 16e8, {16, 3 * 15e8 / 0.01}},
      {"4 of 400 Gb/s", collective_of(all_gather), shape_of(90, 16, 2, 4, 50e9), 16e8, {16, 3 * 15e8 / 0.01}},
      {"4 of 100 Gb/s",
       collective_of(all_gather),
       shape_of(70, 16, 2, 4, 12.5e9),
       16e8,
       {8, 3 * 15e8 / 0.01}},
      {"1 of 10 Gb/s", collective_of(all_reduce), shape_of(60, 4, 4, 1, 1.25e9), 4e8, {2, 3 * 6e8 / 0.01}},
      {"PCIe", collective_of(all_reduce), over_pcie(shape_of(70, 4, 1, 1)), 4e8, {2, 3 * 6e8 / 0.01}},
      // the switch reads the buffer and writes the sum
      {"NVLS", collective_of(all_reduce, Algorithm::nvls), shape_of(90, 8, 1, 8), 8e8, {16, 2 * 8e8 / 0.01}},
      {"NVLSTree",
       collective_of(all_reduce, Algorithm::nvls_tree),
       shape_of(100, 16, 2, 8),
       8e8,
       {32, 16e8 / 0.01}},
      // a chain in each node, both ways
      {"CollNet",
       collective_of(all_reduce, Algorithm::collnet_chain),
       shape_of(80, 16, 2, 8),
       8e8,
       {16, 3 * 15e8 / 0.01}},
      {"copy engines",
       collective_of(all_gather, Algorithm::ring, true),
       shape_of(90, 8, 1, 8),
       8e8,
       {0, 3 * 7e8 / 0.01}},
      {"one rank", collective_of(all_reduce), shape_of(80, 1, 1, 8), 8e8, {0, 0}},
      {"processors", collective_of(all_reduce), shape_of(0, 8, 8, 1), 8e8, {0, 0}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const DeviceLoad load = load_of(c.collective, c.bytes, c.shape, 0.01);
    CHECK(load.units == c.expected.units);
    CHECK(load.memory_bytes_per_s == Approx(c.expected.memory_bytes_per_s).epsilon(1e-12));
    CHECK(load_of(c.collective, c.bytes, c.shape, 0) == DeviceLoad{c.expected.units, 0});  // still waiting
  }
}

TEST_CASE("beside a load a device has fewer multiprocessors and less memory bandwidth, but a tenth of both") {
  const Device device = device_preset("h100");
  const Device beside = device_beside(device, {33, 0.79e12});
  CHECK(beside.busy_units == 33);
  CHECK(beside.free_share() == 0.75);
  CHECK(beside.memory_bandwidth.value ==
        Approx(device.memory_bandwidth.value - 1e12));  // 0.79 of it is reached
  const Device least = device_beside(device, {500, 1e15});
  CHECK(least.free_share() == Approx(0.1));
  CHECK(least.memory_bandwidth.value == Approx(0.1 * device.memory_bandwidth.value));
}

// forums.developer.nvidia.com/t/337991: on an H100 a product of 132 tiles, one per multiprocessor, falls from
// 80 % to 47 % of the peak while ncclAllGather occupies 24 thread blocks.
TEST_CASE("a product of one full wave takes 1.7 times as long beside an all-gather") {
  const Device device = device_preset("h100");
  const Kernel kernel = product(11 * 256, 12 * 128, 8192);
  const double alone_s = kernel_time_s(kernel, device, Precision::bf16);
  const DeviceLoad load = load_of(collective_of(CollectiveKind::all_gather), 0, shape_of(90, 8, 1, 8), 1);
  const double beside_s = kernel_time_s(kernel, device_beside(device, load), Precision::bf16);
  CHECK(beside_s / alone_s == Approx(0.80 / 0.47).epsilon(0.03));
}

// NVIDIA/nccl#338: the kernels of a batch norm's backward pass take 4 to 8 ms instead of 2 ms during
// all-reduces on a node of V100. The ring's bus bandwidth there is 135 GB/s (VIA-Research/vTrain
// trace/v100/AR_GPU8_LUT).
TEST_CASE("a kernel bound by memory takes more than twice as long beside an all-reduce on V100") {
  const Device device = device_preset("v100");
  Kernel kernel;
  kernel.kind = Kernel::Kind::memory;
  kernel.bytes = 2e-3 * device.memory_bandwidth.value * device.memory_efficiency.value;
  const double bytes = 1e8, seconds = 2 * 7.0 / 8 * bytes / 135e9;
  const DeviceLoad load =
      load_of(collective_of(CollectiveKind::all_reduce), bytes, shape_of(70, 8, 1, 4), seconds);
  const double beside_s = kernel_time_s(kernel, device_beside(device, load), Precision::fp16);
  CHECK(beside_s > 4e-3);
  CHECK(beside_s < 8e-3);
}
