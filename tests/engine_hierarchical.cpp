// Tests parameter servers behind one aggregator per node against the closed form.
#include "simulator/costs/compute.hpp"
#include "simulator/engine/layout.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;

namespace {

constexpr double kPass = 0.030;      // forward and backward
constexpr double kBytes = 2 * 25e6;  // of gradients, and of weights: 25 M in bf16
constexpr double kPcie = 10e9, kUplink = 5e9, kNic = 1e9;

// Returns a scenario with `nodes` nodes of two devices on PCIe, optionally behind a PCIe switch to the
// processor.
std::string text_of(int nodes, int servers, bool pcie_switch) {
  return "[model.profiled]\nstages = 1\nforward_ms = 10\nbackward_input_ms = 12\nbackward_weight_ms = "
         "8\np2p_bytes = "
         "1\nparameters = 25000000\n[training]\nmicro_batch = 1\nglobal_batch = " +
         std::to_string(2 * nodes) + "\n[cluster]\nnodes = " + std::to_string(nodes) +
         "\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 2\ninterconnect = \"pcie\"\npcie_gb_per_s = "
         "10\nnic_gbps "
         "= 8\n" +
         (pcie_switch ? "pcie_switch = [{devices = 2, gb_per_s = 5}]\n" : "") +
         "[cluster.fabric]\nkind = \"switch\"\n[strategy]\noverlap = false\ngradients = "
         "\"hierarchical-parameter-server\"\n[strategy.hierarchical_parameter_server]\nplacement = "
         "\"colocated\"\nservers = " +
         std::to_string(servers) + "\n[simulation]\nprotocol = \"ideal\"\n";
}

double work_s(const Scenario& scenario, const Plan& plan, const std::string& program) {
  double seconds = 0;
  for (const Program& p : plan.schedule->programs)
    if (p.name == program)
      for (const Op& op : p.ops)
        if (op.kind == OpKind::compute)
          seconds +=
              work_time_s(plan.schedule->works[op.work],
                          device_at(*scenario.cluster, plan.endpoints[plan.schedule->first_rank(p.role)]));
  return seconds;
}

}  // namespace

TEST_CASE("aggregated servers: compute, in to the processor, sum, once a node over the network, and back") {
  for (int nodes : {1, 2, 4})
    for (int servers : {1, 2, 4})
      for (bool pcie_switch : {false, true}) {
        if (servers > nodes) continue;
        CAPTURE(nodes, servers, pcie_switch);
        const Scenario scenario = read_scenario_text(text_of(nodes, servers, pcie_switch), "test.toml");
        const Plan plan = write_schedule(scenario);
        check(*plan.schedule);
        Run run;
        run.jobs = {{scenario.name, {{plan.schedule, 1}}, plan.endpoints}};
        const Trace trace = simulate_in_child(run, *scenario.cluster, scenario.engine);
        // Both devices of a node share the route to its processor.
        const double inside_s = 2 * kBytes / (pcie_switch ? kUplink : kPcie);
        // A server receives its share of the other nodes' sums; a node without a server sends its entire sum.
        const double between_s =
            std::max((nodes - 1) * kBytes / servers, servers < nodes ? kBytes : 0.0) / kNic;
        const double sum_s = work_s(scenario, plan, "aggregator"),
                     update_s = work_s(scenario, plan, "server");
        CHECK(sum_s > 0);
        CHECK(update_s > 0);
        CHECK(trace.end_s == Approx(kPass + 2 * inside_s + 2 * between_s + sum_s + update_s).epsilon(1e-3));
        // Once in and once out for every device and for every node.
        CHECK(trace.bytes_total == Approx(2 * (2 * nodes + nodes) * kBytes).epsilon(1e-9));
        EngineOptions whole = scenario.engine;
        whole.fold = false;
        CHECK(simulate_in_child(run, *scenario.cluster, whole).end_s == Approx(trace.end_s).epsilon(1e-9));
      }
}
