// Tests clusters whose nodes have different devices.
#include <fmt/format.h>

#include <algorithm>

#include "simulator/costs/compute.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

struct GroupOutcome {
  Scenario scenario;
  Metrics metrics;
};

GroupOutcome mixed(const std::string& cluster, const std::string& strategy, bool fold) {
  const std::string text = fmt::format(
      "[model.multi_layer_perceptron]\nwidths = [4096, 4096, 4096, 4096, 4096]\n[training]\nglobal_batch = "
      "65536\n"
      "micro_batch = 4096\nprecision = \"fp16\"\n[cluster]\n{}[cluster.node]\ndevice = \"a100-80\"\n"
      "devices = 2\ninterconnect = \"nvswitch\"\nnvlink_gb_per_s = 300\nnic_gbps = 100\n"
      "[cluster.fabric]\nkind = \"switch\"\n[strategy]\n{}[simulation]\nprotocol = \"ideal\"\nfold = {}\n",
      cluster, strategy, fold);
  GroupOutcome run{read_scenario_text(text, "test.toml", {}), {}};
  const Plan plan = write_schedule(run.scenario);
  const Trace trace =
      simulate_in_child(one_job(*plan.schedule, plan.endpoints, plan.schedule->repeats(run.scenario.steps)),
                        *run.scenario.cluster, run.scenario.engine);
  run.metrics = evaluate(trace, run.scenario, plan);
  return run;
}

}  // namespace

TEST_CASE("groups: ranks that wait for one another take the time of the slower devices") {
  const std::string both = "nodes = 1\ngroup = [{nodes = 1, device = \"v100\"}]\n";
  for (const char* strategy : {"data = 4\n", "data = 2\npipeline = 2\n"}) {
    CAPTURE(strategy);
    const GroupOutcome a100 = mixed("nodes = 2\n", strategy, true), run = mixed(both, strategy, true),
                       whole = mixed(both, strategy, false);
    CHECK(run.scenario.cluster->nodes() == 2);
    CHECK(run.scenario.cluster->devices() == 4);
    CHECK(run.scenario.cluster->device_of_node(1).name == "v100");
    CHECK(run.scenario.cluster->title.ends_with("+ 1 with v100 (4 GPUs)"));
    CHECK(run.metrics.step_time_s > 1.25 * a100.metrics.step_time_s);
    CHECK(run.metrics.step_time_s == Approx(whole.metrics.step_time_s).epsilon(1e-9));
    CHECK(run.metrics.breakdown.compute_s == Approx(whole.metrics.breakdown.compute_s).epsilon(1e-9));
    CHECK(run.metrics.memory.capacity == Approx(std::min(device_preset("v100").memory_bytes.value,
                                                         device_preset("a100-80").memory_bytes.value)));
    // The peak is the mean of all devices'.
    const auto peak = [](const char* name) {
      return device_preset(name).peak_flops[static_cast<std::size_t>(Precision::fp16)].value;
    };
    CHECK(run.metrics.mfu / run.metrics.model_tflops_per_device ==
          Approx(1e12 / ((peak("a100-80") + peak("v100")) / 2)).epsilon(1e-9));
  }
  // Without communication in the way, data-parallel computation takes what V100s alone take.
  const GroupOutcome run = mixed(both, "data = 4\n", true);
  const GroupOutcome base = mixed("nodes = 2\n", "data = 4\n", true);
  double of_v100 = 0, of_a100 = 0;
  const Plan plan = write_schedule(base.scenario);
  for (const Op& op : plan.schedule->programs.front().ops)
    if (op.kind == OpKind::compute) {
      of_v100 += work_time_s(plan.schedule->works[static_cast<std::size_t>(op.work)], device_preset("v100"));
      of_a100 +=
          work_time_s(plan.schedule->works[static_cast<std::size_t>(op.work)], device_preset("a100-80"));
    }
  CHECK(run.metrics.breakdown.compute_s == Approx((of_v100 + of_a100) / 2).epsilon(1e-6));
  CHECK(run.metrics.step_time_s >= of_v100);
}
