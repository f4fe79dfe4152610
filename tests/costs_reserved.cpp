// Tests the memory that CUDA, NCCL and cuBLAS reserve on a GPU.
#include "simulator/costs/reserved.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

ReservedBytes reserved(const std::string& cluster, const std::string& strategy) {
  const Scenario scenario =
      read_scenario_text("[model]\npreset = \"bert-large\"\n[training]\nglobal_batch = 64\n[cluster]\n" +
                             cluster + "[strategy]\n" + strategy,
                         "test.toml", {});
  const Plan plan = write_schedule(scenario);
  return reserved_bytes(*plan.schedule, plan.endpoints, *scenario.cluster);
}

constexpr double kMiB = 1048576, kConnection = 0.5 * kMiB + 4.6875 * kMiB + 4 * kMiB;

}  // namespace

TEST_CASE("reserved memory: NCCL's buffers by communicator, cuBLAS's workspace by device") {
  // One ring of all GPUs of a node has 24 channels.
  const ReservedBytes one = reserved("preset = \"dgx-a100\"\nnodes = 1\n", "data = 8\n");
  CHECK(one.communication == Approx(24 * kConnection));
  CHECK(one.workspaces == Approx(2 * 8.125 * kMiB));  // one for each thread's handle
  CHECK(one.context > 0.47e9);
  CHECK(one.context < 0.92 * 1073741824);
  // Tensor ranks have a communicator inside the node, data ranks another one between nodes.
  const ReservedBytes two = reserved("preset = \"dgx-h100\"\nnodes = 2\n", "data = 2\ntensor = 8\n");
  CHECK(two.communication == Approx((24 + 16) * kConnection));
  CHECK(two.workspaces == Approx(2 * 32 * kMiB));
  // NVIDIA/nccl issue 964: 688 MiB a communicator of more than two ranks, 544 MiB of two.
  CHECK(one.most_communication == Approx(688 * kMiB));
  CHECK(two.most_communication == Approx((688 + 544) * kMiB));
  CHECK(two.context == one.context);
  CHECK(reserved("preset = \"dgx-a100\"\nnodes = 1\ndevices_per_node = 1\n", "").communication == 0);
  CHECK(reserved("preset = \"cpu-cluster\"\nnodes = 2\n", "data = 2\n").total() == 0);
}

TEST_CASE("reserved memory: Transformer Engine's workspaces, and what the allocator cannot use") {
  const Scenario scenario = read_scenario_text(
      "[model]\npreset = \"gpt2\"\n[training]\nglobal_batch = 8\n[cluster]\npreset = \"dgx-a100\"\n",
      "t.toml", {});
  Framework framework;
  framework.engine_workspaces = 5;
  framework.deterministic_products = true;
  // Two handles of 8 x 4,096 KiB, and five workspaces of 4 MiB before Hopper.
  CHECK(reserved_on(scenario.cluster->node().device, framework).workspaces ==
        Approx((2 * 32 + 5 * 4) * kMiB));
  const AllocatorBytes alone = allocator_bytes(100, 0, false), ahead = allocator_bytes(100, 30, false),
                       waits = allocator_bytes(100, 30, true);
  CHECK(alone.low == 100);
  CHECK(alone.low < alone.expected);
  CHECK(alone.expected < alone.high);
  CHECK(ahead.expected == Approx(alone.expected + 30));
  CHECK(waits.expected == alone.expected);
  CHECK(waits.high > alone.high);
}
