// Tests the time that launching kernels costs each GPU's process, against closed forms and values computed by
// hand.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/costs/compute.hpp"
#include "simulator/costs/framework.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/strategies_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

Scenario on_ranks(test::Degrees degrees, HostLaunches launches) {
  Scenario s = test::axes_scenario(test::axes_gpt(4), degrees);
  s.microbatches = 4;
  s.training.global_batch = 4 * s.training.micro_batch * degrees.data;
  s.engine.launches = launches;
  s.cluster = make_cluster(star(s.cluster->devices()));
  return s;
}

struct LaunchRun {
  Plan plan;
  Trace trace;
  Breakdown parts;
  double step_s = 0;
};

LaunchRun run_launches(const Scenario& s) {
  LaunchRun run;
  run.plan = write_schedule(s);
  run.trace = simulate_in_child(one_job(*run.plan.schedule, run.plan.endpoints), *s.cluster, s.engine);
  run.parts = break_down(run.trace, 0);
  for (const double end_s : run.trace.spans.end_s) run.step_s = std::max(run.step_s, end_s);
  return run;
}

double kernels_of(const Plan& plan) {
  double count = 0;
  for (const Op& op : plan.schedule->programs.front().ops)
    if (op.kind == OpKind::compute) count += launched_kernels(plan.schedule->works[op.work]);
  return count;
}

}  // namespace

TEST_CASE("a process that issues kernels more slowly than they run sets the step") {
  const Scenario s = on_ranks({}, {1e-3, 0, 0, false});
  const LaunchRun run = run_launches(s);
  CHECK(kernels_of(run.plan) > 100);
  CHECK(run.step_s == Approx(1e-3 * kernels_of(run.plan)).epsilon(1e-12));
}

// k and e are the seconds per launch of the 10 listed kernels, 4 of them on routed rows, and of the 2 x 8
// products of single experts.
TEST_CASE("CUDA graphs issue what they hold, and experts' products go one by one where nothing groups them") {
  Work work;
  work.kernels.resize(10);
  for (std::size_t i = 0; i < 4; ++i) work.kernels[i].routed = true;
  for (std::size_t i = 0; i < 2; ++i) {
    work.kernels[i].kind = Kernel::Kind::gemm;
    work.kernels[i].launches = 8;
  }
  const double k = 5e-6, e = 20e-6;
  Framework framework;
  framework.kernel_launch_s.value = k;
  framework.expert_launch_s.value = e;
  struct Case {
    bool graphs, hold_experts;
    double launch_s;
  };
  for (const Case& c : {Case{false, false, 10 * k + 16 * e}, Case{false, true, 10 * k + 16 * e},
                        Case{true, false, 4 * k + 16 * e}, Case{true, true, 0}}) {
    CAPTURE(c.graphs, c.hold_experts);
    framework.graphs_hold_experts = c.hold_experts;
    const HostLaunches launches = host_launches(framework, c.graphs, false);
    CHECK(launch_time_s(launches, work) == Approx(c.launch_s).margin(1e-18));
    CHECK(launches.any() == (c.launch_s > 0));
  }
}

TEST_CASE("a process that runs ahead of its device costs what it does once a step") {
  const double plain_s = run_launches(on_ranks({}, {})).step_s;
  CHECK(run_launches(on_ranks({}, {1e-9, 0, 0, false})).step_s == Approx(plain_s).epsilon(1e-12));
  CHECK(run_launches(on_ranks({}, {1e-9, 0, 7e-3, false})).step_s == Approx(plain_s + 7e-3).epsilon(1e-12));
}

// begin = max(end of the previous op, issue of the op's first kernel); end = max(begin + device time, issue
// of its last kernel).
TEST_CASE("each op begins when its first kernel is issued and ends after its last one is") {
  for (const double kernel_s : {2e-6, 10e-6, 30e-6, 100e-6}) {
    CAPTURE(kernel_s);
    const Scenario s = on_ranks({}, {kernel_s, 0, 0, false});
    const LaunchRun run = run_launches(s);
    double issued_s = 0, device_s = 0, waits_s = 0;
    std::size_t row = 0;
    for (const Op& op : run.plan.schedule->programs.front().ops) {
      if (op.kind != OpKind::compute) continue;
      const Work& work = run.plan.schedule->works[op.work];
      const double own_s = work_time_s(work, s.cluster->node().device);
      const double begin_s = std::max(device_s, issued_s), before_s = device_s;
      issued_s += kernel_s * launched_kernels(work);
      device_s = std::max(begin_s + own_s, issued_s);
      waits_s += device_s - before_s - own_s;
      while (run.trace.op_of(row).kind != OpKind::compute) ++row;
      CHECK(run.trace.spans.end_s[row++] == Approx(device_s).epsilon(1e-12));
    }
    CHECK(run.step_s == Approx(device_s).epsilon(1e-12));
    CHECK(run.parts.launches_s == Approx(waits_s).margin(1e-12 * device_s));
    CHECK(run.parts.compute_s == Approx(device_s - waits_s).epsilon(1e-12));
    CHECK(run.parts.total_s() == Approx(device_s).epsilon(1e-12));
  }
}

// For forward work with experts, issued = max(issued, begin) before its kernels are issued.
TEST_CASE("a process that counts the rows of experts does not run ahead of them") {
  for (const double kernel_s : {2e-6, 5e-6, 8e-6, 11e-6, 14e-6, 17e-6, 20e-6, 25e-6, 30e-6, 300e-6}) {
    double step_s[2] = {};
    for (const bool waits : {false, true}) {
      CAPTURE(kernel_s, waits);
      HostLaunches launches{kernel_s, 0, 0, false};
      launches.expert_product_s = 5e-6;
      launches.waits_for_rows = waits;
      Scenario s = on_ranks({}, launches);
      s.model = test::axes_mixture(4);
      const LaunchRun run = run_launches(s);
      double issued_s = 0, device_s = 0;
      for (const Op& op : run.plan.schedule->programs.front().ops) {
        if (op.kind != OpKind::compute) continue;
        const Work& work = run.plan.schedule->works[op.work];
        const double begin_s = std::max(device_s, issued_s);
        if (waits && op.pass == Pass::forward) issued_s = begin_s;
        issued_s += launch_time_s(launches, work);
        device_s = std::max(begin_s + work_time_s(work, s.cluster->node().device), issued_s);
      }
      CHECK(run.step_s == Approx(device_s).epsilon(1e-12));
      step_s[waits ? 1 : 0] = run.step_s;
    }
    CHECK(step_s[1] >= (1 - 1e-12) * step_s[0]);
  }
  // During all-to-alls, a process that does not wait gets ahead of the device.
  const auto exchanging_s = [](bool waits) {
    HostLaunches launches{200e-6, 0, 0, false};
    launches.waits_for_rows = waits;
    Scenario s = on_ranks({4, 1, 1, 1}, launches);
    s.model = test::axes_mixture(4);
    s.strategy.expert = 4;
    s.cluster = make_cluster(star(4, 4e8));
    return run_launches(s).step_s;
  };
  CHECK(exchanging_s(true) > 1.005 * exchanging_s(false));
}

TEST_CASE("a process that waits for messages does not run ahead of them") {
  const auto step_s = [](bool waits) {
    Scenario s = on_ranks({1, 1, 1, 4}, {20e-6, 0, 0, waits});
    s.strategy.blocking_p2p = true;
    return run_launches(s).step_s;
  };
  CHECK(step_s(true) > 1.02 * step_s(false));
}

// Launches take 1 + share x tensor ranks times as long where neighbouring stages are on different nodes.
TEST_CASE("messages over the network hold up processes, and tensor ranks wait for each other") {
  struct Case {
    test::Degrees degrees;
    bool network;
    double factor;
  };
  for (const Case& c :
       {Case{{1, 1, 1, 2}, true, 1.5}, Case{{1, 1, 2, 2}, true, 2}, Case{{2, 1, 4, 2}, true, 3},
        Case{{2, 1, 2, 1}, true, 1}, Case{{1, 1, 2, 2}, false, 1}}) {
    CAPTURE(c.degrees.data, c.degrees.tensor, c.degrees.pipeline, c.network);
    Scenario held_up = on_ranks(c.degrees, {100e-6, 200e-6, 0, false});
    Scenario slower = on_ranks(c.degrees, {c.factor * 100e-6, c.factor * 200e-6, 0, false});
    held_up.engine.launches.message_stall = 0.5;
    if (!c.network) {
      ClusterParts parts = star(1);
      parts.node.devices = held_up.cluster->devices();
      parts.node.interconnect = Node::Interconnect::nvswitch;
      parts.node.device_bandwidth = 100e9;
      for (Scenario* s : {&held_up, &slower}) s->cluster = make_cluster(parts);
    }
    CHECK(run_launches(held_up).step_s == Approx(run_launches(slower).step_s).epsilon(1e-12));
  }
}

TEST_CASE("launches fold exactly") {
  const std::vector<std::pair<test::Degrees, bool>> cases = {
      {{2, 1, 2, 2}, false}, {{2, 1, 2, 2}, true}, {{4, 1, 1, 2}, false}, {{2, 2, 2, 1}, true}};
  for (const auto& [degrees, waits] : cases) {
    CAPTURE(degrees.data, degrees.context, degrees.tensor, degrees.pipeline, waits);
    Scenario s = on_ranks(degrees, {15e-6, 25e-6, 1e-3, waits});
    s.strategy.blocking_p2p = waits;
    std::map<std::pair<int, int>, double> ends;  // by rank and op
    for (const bool fold : {true, false}) {
      s.engine.fold = fold;
      const LaunchRun run = run_launches(s);
      for (std::size_t row = 0; row < run.trace.spans.size(); ++row)
        for (const int rank : run.trace.classes[run.trace.spans.rank_class[row]].ranks) {
          const double end_s = run.trace.spans.end_s[row];
          const auto [known, fresh] = ends.try_emplace({rank, run.trace.spans.op[row]}, end_s);
          if (!fresh) CHECK(end_s == Approx(known->second).epsilon(1e-9));
        }
    }
  }
}

TEST_CASE("gradients that are added up in kernels of their own move bytes for each parameter") {
  Scenario s = on_ranks({}, {});
  const auto bytes = [](const Plan& plan) {
    double sum = 0;
    for (const Op& op : plan.schedule->programs.front().ops)
      if (op.kind == OpKind::compute)
        for (const Kernel& kernel : plan.schedule->works[op.work].kernels) sum += kernel.count * kernel.bytes;
    return sum;
  };
  const double plain = bytes(write_schedule(s));
  s.framework.accumulation_bytes.value = 6;
  const double parameters = parameter_count(s.model);
  CHECK(bytes(write_schedule(s)) - plain == Approx(4 * 6 * parameters).epsilon(1e-9));
}
