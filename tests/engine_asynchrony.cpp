// Tests workers that do not wait for each other: throughput and staleness against closed forms to 0.1 %, from
// a scenario's text to the result.
#include <algorithm>
#include <map>
#include <set>

#include "simulator/costs/compute.hpp"
#include "simulator/engine/layout.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/rows.hpp"
#include "simulator/trace/starting_phases.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr double kCompute = 0.030;  // per round, in the scenarios below

struct Outcome {
  Scenario scenario;
  Plan plan;
  Trace trace;      // of one set of starting phases
  Metrics metrics;  // means over all sets
  const AsynchronyFigures& figures() const { return *metrics.asynchrony; }
  int servers() const { return scenario.strategy.parameter_server.servers; }
  // Seconds of a push from one worker to one server, alone on a network whose NICs carry `nic` bytes/s.
  double push_s(double nic) const {
    return parameters() * element_bytes(scenario.training.gradient_precision) / servers() / nic;
  }
  double pull_s(double nic) const {
    return parameters() * element_bytes(scenario.training.precision) / servers() / nic;
  }
  // Seconds of the update for one push, over all buckets.
  double update_s() const {
    const Device device = device_at(*scenario.cluster, plan.endpoints[plan.schedule->first_rank(1)]);
    double seconds = 0;
    for (const Work& work : plan.schedule->works)
      if (work.parameters_updated > 0) seconds += work_time_s(work, device);
    return seconds;
  }
  double parameters() const { return std::get<ProfiledModel>(scenario.model.shape).parameters.front(); }
};

Outcome run_text(const std::string& text, const std::vector<std::string>& more) {
  Outcome o;
  o.scenario = read_scenario_text(text, "test.toml", more);
  o.plan = write_schedule(o.scenario);
  Job job;
  job.name = "job";
  job.phases = {{o.plan.schedule, o.plan.schedule->repeats(o.scenario.steps)}};
  job.endpoints = o.plan.endpoints;
  Run run;
  run.jobs = {std::move(job)};
  std::vector<std::vector<double>> starts_s = {{}};  // for synchronous servers: one simulation
  if (o.plan.schedule->asynchrony) starts_s = o.plan.schedule->asynchrony->starts_s;
  std::vector<Metrics> metrics;
  for (const std::vector<double>& start_s : starts_s) {
    run.jobs.front().start_s = start_s;
    o.trace = simulate_in_child(run, *o.scenario.cluster, o.scenario.engine);
    metrics.push_back(evaluate(o.trace, o.scenario, o.plan));
  }
  o.metrics =
      o.plan.schedule->asynchrony ? mean_over_phases(metrics, o.trace, *o.scenario.cluster) : metrics.front();
  return o;
}

// Runs a scenario in which a round takes 30 ms on one device per node, with one sample per worker and round.
Outcome run_async(int workers, int servers, double nic_gbps, const std::vector<std::string>& more = {},
                  double parameters = 25e6) {
  const std::string text =
      "[model.profiled]\nstages = 1\nforward_ms = 10\nbackward_input_ms = 12\n"
      "backward_weight_ms = 8\np2p_bytes = 1\nparameters = " +
      std::to_string(parameters) +
      "\n[training]\nmicro_batch = 1\nprecision = \"fp32\"\noptimizer = \"sgd\"\n"
      "global_batch = " +
      std::to_string(workers) + "\n[cluster]\nnodes = " + std::to_string(workers) +
      "\n[cluster.node]\ndevice = \"a100-80\"\ndevices = 1\ncpu_cores = 32\nnic_gbps = " +
      std::to_string(nic_gbps) +
      "\n[cluster.fabric]\nkind = \"switch\"\nlatency_us = 0\n"
      "[strategy]\ngradients = \"parameter-server\"\noverlap = false\n"
      "[strategy.parameter_server]\nmode = \"async\"\nservers = " +
      std::to_string(servers) + "\n[simulation]\nprotocol = \"ideal\"\n";
  return run_text(text, more);
}

void check_adds_up(const Outcome& o) {
  CHECK(o.metrics.breakdown.total_s() == Approx(o.metrics.step_time_s).epsilon(1e-9));
  double sum = 0;
  for (const auto& worker : o.figures().workers) sum += worker.samples_per_s;
  CHECK(o.metrics.samples_per_s == Approx(sum).epsilon(1e-9));
  CHECK(o.metrics.step_time_s * sum == Approx(o.plan.schedule->samples).epsilon(1e-9));
}

// Checks that every gradient applied in the window has this staleness.
void check_staleness(const Outcome& o, int updates) {
  REQUIRE(o.figures().staleness.size() == 1);
  CHECK(o.figures().staleness.begin()->first == updates);
}

const char* const kStaleSynchronous = "strategy.parameter_server.mode=stale-synchronous";

std::string staleness(int rounds) {
  return "strategy.parameter_server.staleness=" + std::to_string(rounds);
}

std::string slow_device(int device, double factor) {
  return "cluster.slow=[{device=" + std::to_string(device) + ",factor=" + std::to_string(factor) + "}]";
}

}  // namespace

TEST_CASE("bound by the servers' cards: n gradients in, n weights out, both at once", "[release]") {
  struct Case {
    int workers, servers;
    const char* gradients;  // precision of the gradients; weights are fp32
  };
  for (const Case& c : {Case{4, 1, "fp32"}, Case{8, 1, "fp32"}, Case{32, 1, "fp32"}, Case{8, 1, "fp16"},
                        Case{16, 2, "fp32"}, Case{16, 4, "fp32"}}) {
    CAPTURE(c.workers, c.servers, c.gradients);
    const Outcome o =
        run_async(c.workers, c.servers, 8, {std::string("training.gradient_precision=") + c.gradients});
    CHECK(o.metrics.step_time_s == Approx(c.workers * o.pull_s(1e9)).epsilon(kTolerance));
    CHECK(o.metrics.busiest_link.find("server") == 0);
    CHECK(o.metrics.busiest_utilization == Approx(1).epsilon(kTolerance));
    CHECK(o.metrics.network_bytes_per_step ==
          Approx(c.workers * c.servers * (o.push_s(1) + o.pull_s(1))).epsilon(1e-9));
    if (c.servers == 1) check_staleness(o, c.workers - 1);
    CHECK(o.figures().mean_staleness() == Approx(c.workers - 1).epsilon(0.01));
    check_adds_up(o);
  }
}

TEST_CASE("all workers are measured in one window, in which no link carries more than it can") {
  for (const int workers : {2, 3, 5})
    for (const int servers : {1, 2})
      for (const double nic_gbps : {2.0, 8.0, 800.0})
        for (const double slow : {1.0, 0.6, 0.05})
          for (const char* mode : {"async", "stale-synchronous"}) {
            CAPTURE(workers, servers, nic_gbps, slow, mode);
            std::vector<std::string> more = {slow_device(0, slow),
                                             std::string("strategy.parameter_server.mode=") + mode};
            if (std::string(mode) == "stale-synchronous") more.push_back(staleness(2));
            const Outcome o = run_async(workers, servers, nic_gbps, more);
            const Cluster& cluster = *o.scenario.cluster;
            REQUIRE_FALSE(o.figures().link_bytes_per_s.empty());
            double busiest = 0;
            for (const auto& [link, bytes_per_s] : o.figures().link_bytes_per_s) {
              CHECK(bytes_per_s <= cluster.bandwidth(link) * (1 + 1e-9));
              busiest = std::max(busiest, bytes_per_s / cluster.bandwidth(link));
            }
            CHECK(o.metrics.busiest_utilization == Approx(busiest));
            // Of one simulation: the rounds under way at the ends of the window count in part.
            const AsynchronyFigures last = asynchrony_figures(o.trace, 0);
            for (const auto& worker : last.workers) {
              const double rounds = worker.rounds_per_s * (last.window_end_s - last.window_begin_s);
              CHECK(rounds <= worker.rounds + 1 + 1e-9);
              CHECK(rounds >= worker.rounds - 1 - 1e-9);
            }
            check_adds_up(o);
          }
}

TEST_CASE("bound by the servers' updates: one at a time") {
  for (int workers : {4, 8, 16}) {
    CAPTURE(workers);
    const Outcome o = run_async(workers, 1, 800, {"training.optimizer=adam", "cluster.node.cpu_cores=1"});
    REQUIRE(workers * o.update_s() > kCompute + o.push_s(1e11) + o.update_s() + o.pull_s(1e11));
    CHECK(o.metrics.step_time_s == Approx(workers * o.update_s()).epsilon(kTolerance));
    check_staleness(o, workers - 1);
    check_adds_up(o);
  }
}

TEST_CASE("bound by the workers: n / (compute + push + update + pull)", "[release]") {
  for (int workers : {1, 2, 8, 16})
    for (const char* overlap : {"strategy.overlap=false", "strategy.overlap=true"}) {
      CAPTURE(workers, overlap);
      const Outcome o = run_async(workers, 1, 800, {overlap}, 2.5e6);
      const double round_s = kCompute + o.push_s(1e11) + o.update_s() + o.pull_s(1e11);
      CHECK(o.metrics.samples_per_s == Approx(workers / round_s).epsilon(kTolerance));
      for (const auto& worker : o.figures().workers)
        CHECK(worker.samples_per_s == Approx(1 / round_s).epsilon(kTolerance));
      check_staleness(o, workers - 1);
      check_adds_up(o);
    }
}

TEST_CASE("a longer window gives the same figures where rounds repeat", "[release]") {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"cluster.node.nic_gbps=800"},
      {"cluster.node.nic_gbps=800", slow_device(2, 0.3)},
      {"cluster.node.nic_gbps=80", kStaleSynchronous, staleness(5), slow_device(2, 0.9)},
      {"strategy.parameter_server.placement=colocated", "cluster.node.nic_gbps=800"},
  };
  for (const auto& overrides : cases) {
    CAPTURE(overrides.empty() ? "" : overrides.front());
    std::vector<std::string> longer = overrides;
    longer.push_back("simulation.steps=5");
    const Outcome one = run_async(8, 1, 8, overrides, 2.5e6), five = run_async(8, 1, 8, longer, 2.5e6);
    CHECK(one.metrics.step_time_s == Approx(five.metrics.step_time_s).epsilon(kTolerance));
    CHECK(five.figures().workers.front().rounds > 4 * one.figures().workers.front().rounds);
  }
}

TEST_CASE("a worker that is slower by little changes the step by little", "[release]") {
  // If they started together, these four would push and pull in lockstep forever: 113 ms per step, and 99 ms
  // with one of them at 0.9 of its speed, which breaks the lockstep.
  const auto step = [](double factor) {
    return run_text(
               "[model]\npreset = \"resnet50\"\n[training]\nmicro_batch = 32\nprecision = \"fp32\"\n"
               "optimizer = \"momentum\"\nglobal_batch = 128\n[cluster]\nnodes = 4\n[cluster.node]\n"
               "device = \"a100-80\"\ndevices = 1\ncpu_cores = 32\nnic_gbps = 40\n[cluster.fabric]\nkind = "
               "\"switch\"\n"
               "latency_us = 5\n[strategy]\ngradients = \"parameter-server\"\n"
               "[strategy.parameter_server]\nmode = \"async\"\n",
               {slow_device(1, factor)})
        .metrics;
  };
  const Metrics even = step(1), little = step(0.999), more = step(0.9);
  for (const Metrics* m : {&even, &little, &more}) {
    const AsynchronyFigures::StartingPhases& phases = *m->asynchrony->phases;
    CHECK(phases.count == 8);
    CHECK(phases.least_s < 0.99 * m->step_time_s);
    CHECK(phases.most_s > 1.01 * m->step_time_s);
    CHECK(m->breakdown.total_s() == Approx(m->step_time_s).epsilon(1e-9));
  }
  CHECK(little.step_time_s == Approx(even.step_time_s).epsilon(0.01));
  CHECK(more.step_time_s > 0.99 * even.step_time_s);
  CHECK(more.step_time_s < 1.1 * even.step_time_s);
}

TEST_CASE("a slow worker keeps nobody from working, unless servers wait for everybody") {
  constexpr double kFactor = 0.25;
  const Outcome even = run_async(8, 1, 800, {}, 2.5e6);
  const Outcome o = run_async(8, 1, 800, {slow_device(3, kFactor)}, 2.5e6);
  const double rest = o.push_s(1e11) + o.update_s() + o.pull_s(1e11);
  for (const auto& worker : o.figures().workers) {
    CAPTURE(worker.rank);
    const double compute = worker.rank == 3 ? kCompute / kFactor : kCompute;
    CHECK(worker.samples_per_s == Approx(1 / (compute + rest)).epsilon(kTolerance));
    if (worker.rank != 3)
      CHECK(worker.samples_per_s ==
            Approx(even.figures().workers[worker.rank].samples_per_s).epsilon(kTolerance));
  }
  check_adds_up(o);
  const Outcome sync =
      run_async(8, 1, 800, {slow_device(3, kFactor), "strategy.parameter_server.mode=sync"}, 2.5e6);
  CHECK_FALSE(sync.metrics.asynchrony.has_value());
  CHECK(sync.metrics.step_time_s > kCompute / kFactor);
  CHECK(o.metrics.samples_per_s > 3.5 * sync.metrics.samples_per_s);
  // The slow worker's gradients are the stalest: during one of its rounds, the others complete four.
  CHECK(o.figures().most_staleness() >= 7 * 3);
}

TEST_CASE("stale-synchronous: nobody is ever more rounds ahead of the slowest than is allowed", "[release]") {
  for (int bound = 0; bound <= 5; ++bound)
    for (double factor : {0.3, 0.7})
      for (int servers : {1, 3}) {
        if (kSanitized && servers == 3 && bound % 3 != 1) continue;
        CAPTURE(bound, factor, servers);
        const Outcome o =
            run_async(6, servers, 200, {kStaleSynchronous, staleness(bound), slow_device(4, factor)});
        // Compares the start of each worker's rounds with the rounds of every worker that server 0 has
        // applied by then.
        const std::vector<AppliedPush> pushes = applied_pushes(o.trace, 0);
        int most_ahead = 0;
        for (std::size_t row = 0; row < o.trace.spans.size(); ++row) {
          const Op& op = o.trace.op_of(row);
          if (op.pass != Pass::forward || o.trace.classes[o.trace.spans.rank_class[row]].role != 0) continue;
          const int clock = o.trace.spans.step[row];
          std::map<int, int> applied;
          for (int w = 0; w < 6; ++w) applied[w] = 0;
          for (const AppliedPush& push : pushes)
            if (push.applied_s <= o.trace.spans.begin_s[row]) ++applied[push.worker];
          for (const auto& [worker, count] : applied) most_ahead = std::max(most_ahead, clock - count);
        }
        CHECK(most_ahead == bound);  // the allowance is fully used
        // In the long run all workers are as fast as the slowest.
        for (const auto& worker : o.figures().workers)
          CHECK(worker.samples_per_s == Approx(o.figures().workers[4].samples_per_s).epsilon(kTolerance));
        check_adds_up(o);
      }
}

TEST_CASE("staleness 0 is lock step: the last worker served sets the pace") {
  // All workers wait for the last update; weights leave one after another, and the last worker to get them is
  // the last to push.
  for (int workers : {2, 4, 8}) {
    CAPTURE(workers);
    const Outcome o = run_async(workers, 1, 80, {kStaleSynchronous, staleness(0)}, 2.5e6);
    const double push = o.push_s(1e10), pull = o.pull_s(1e10);
    REQUIRE(push <= pull);
    CHECK(o.metrics.step_time_s ==
          Approx(workers * pull + kCompute + push + o.update_s()).epsilon(kTolerance));
    // Within a round, each push follows the earlier ones: 0, 1, ... n - 1 updates since the weights were
    // sent.
    CHECK(o.figures().mean_staleness() == Approx((workers - 1) / 2.0).epsilon(0.05));
    CHECK(o.figures().most_staleness() == workers - 1);
  }
}

TEST_CASE("in a pipeline every replica goes at its own pace: (m + p - 1) (tF + tB), push, update, pull",
          "[release]") {
  // The NICs are so fast that replicas do not wait for each other. All stages are equal; the last one's
  // exchange with the servers is hidden behind the first one's passes.
  for (const int microbatches : {1, 2, 4})
    for (const int stages : {2, 4}) {
      CAPTURE(microbatches, stages);
      constexpr int kReplicas = 2, kServers = 2;
      constexpr double kNic = 50e9, kParameters = 1e6;
      const Outcome o = run_async(kReplicas * stages, kServers, kNic * 8 / 1e9,
                                  {"model.profiled.stages=" + std::to_string(stages),
                                   "training.global_batch=" + std::to_string(kReplicas * microbatches)},
                                  kParameters);
      const double round_s = (microbatches + stages - 1) * kCompute +
                             kServers * (o.push_s(kNic) + o.pull_s(kNic)) + o.update_s() / stages;
      CHECK(o.metrics.samples_per_s == Approx(kReplicas * microbatches / round_s).epsilon(kTolerance));
      check_adds_up(o);
      // With two replicas, a gradient's staleness is at most what the other replica pushed in the meantime.
      CHECK(o.figures().mean_staleness() == Approx(1).epsilon(0.05));
      CHECK(o.figures().workers.size() == static_cast<std::size_t>(kReplicas * stages));
    }
}

TEST_CASE("every push is applied once by every server, and answered once", "[release]") {
  for (const char* placement : {"dedicated", "colocated", "devices"})
    for (const char* mode : {"async", "stale-synchronous"})
      for (const char* overlap : {"true", "false"}) {
        CAPTURE(placement, mode, overlap);
        const Outcome o = run_async(4, 3, 40,
                                    {std::string("strategy.parameter_server.placement=") + placement,
                                     std::string("strategy.parameter_server.mode=") + mode,
                                     std::string("strategy.overlap=") + overlap, slow_device(1, 0.6)});
        // By (server's class, op): the rounds in which the op ran.
        std::map<std::pair<int, int>, std::vector<int>> rounds;
        std::map<int, int> pulls;  // by worker: number of complete rounds
        for (std::size_t row = 0; row < o.trace.spans.size(); ++row) {
          const int c = o.trace.spans.rank_class[row];
          const RankClass& who = o.trace.classes[c];
          if (who.role == 1)
            rounds[{c, o.trace.spans.op[row]}].push_back(o.trace.spans.iteration[row]);
          else if (o.trace.op_of(row).name.find("pull") == 0)
            ++pulls[who.ranks.front()];
        }
        const Asynchrony& how = *o.plan.schedule->asynchrony;
        for (int w = 0; w < 4; ++w)
          for (int server = 0; server < 3; ++server) {
            int c = 0;
            while (o.trace.classes[c].role != 1 || o.trace.classes[c].ranks.front() != server) ++c;
            const auto& applied = rounds[{c, how.applies[w]}];
            const auto& sent = rounds[{c, how.sends[w]}];
            for (std::size_t i = 0; i < applied.size(); ++i) CHECK(applied[i] == static_cast<int>(i));
            for (std::size_t i = 0; i < sent.size(); ++i) CHECK(sent[i] == static_cast<int>(i));
            // The run stops when the last worker has received its last answer. By then one more push may have
            // been applied without an answer, or answered at the very end.
            const int pulled = pulls[w];  // there is only one bucket
            CHECK(pulled >= o.plan.schedule->repeats(1));
            CHECK(static_cast<int>(sent.size()) >= pulled - 1);
            CHECK(static_cast<int>(sent.size()) <= pulled + 1);
            CHECK(applied.size() >= sent.size());
            CHECK(applied.size() <= sent.size() + 1);
          }
        check_adds_up(o);
      }
}

TEST_CASE("servers on devices update at the device's speed and take room there", "[release]") {
  const Outcome cpu = run_async(4, 4, 100, {"strategy.parameter_server.placement=colocated"});
  const Outcome gpu = run_async(4, 4, 100, {"strategy.parameter_server.placement=devices"});
  CHECK(gpu.plan.endpoints == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
  // SGD in fp32 moves gradient, weight and weight again: 12 bytes for each parameter of a server's quarter.
  const Device& device = gpu.scenario.cluster->node().device;
  CHECK(gpu.update_s() >= 25e6 / 4 * 12 / device.memory_bandwidth.value);
  CHECK(gpu.update_s() < cpu.update_s());
  // Weights of the shard, and a buffer for the push of each of four workers.
  CHECK(gpu.metrics.memory.weights == Approx(cpu.metrics.memory.weights + 25e6).epsilon(1e-9));
  CHECK(gpu.metrics.memory.buffers == Approx(cpu.metrics.memory.buffers + 4 * 25e6).epsilon(1e-9));
  // A quarter of the traffic stays on the device.
  CHECK(gpu.metrics.busiest_link.find("nic") != std::string::npos);
  const Outcome two = run_async(4, 2, 100, {"strategy.parameter_server.placement=devices"});
  CHECK(two.plan.endpoints == std::vector<int>{0, 1, 2, 3, 0, 2});
  const Outcome sync = run_async(
      4, 4, 100, {"strategy.parameter_server.placement=devices", "strategy.parameter_server.mode=sync"});
  CHECK(sync.metrics.memory.weights == Approx(gpu.metrics.memory.weights).epsilon(1e-9));
}

TEST_CASE("a worker too slow to be measured does not make a run endless", "[release]") {
  const Outcome o = run_async(4, 1, 800, {slow_device(0, 1e-4)}, 2.5e6);
  CHECK(o.figures().workers[0].samples_per_s < 1);
  CHECK(o.figures().workers[1].samples_per_s ==
        Approx(1 / (kCompute + o.push_s(1e11) + o.update_s() + o.pull_s(1e11))).epsilon(kTolerance));
  CHECK(o.metrics.breakdown.total_s() == Approx(o.metrics.step_time_s).epsilon(1e-9));
}

TEST_CASE("turns: first come, first served, as many at once as there are") {
  // Ranks 1, 2, 3 send 1 GB each to rank 0 at 0, 0.1 and 0.2 s. With NICs of 1 GB/s, all three at once end at
  // 3 s at the latest; one at a time, they end at 1, 2 and 3 s. Each is followed by 0.3 s of computation, one
  // after another.
  for (int at_once : {1, 2, 3}) {
    Schedule s;
    s.roles = {role("worker", {{"data", 4}})};
    Program taker;
    taker.name = "taker";
    taker.where = {{0, 0, 0}};
    taker.turns = {{"card", at_once}, {"processor", 1}};
    for (int from = 1; from < 4; ++from) {
      taker.streams.push_back("from " + std::to_string(from));
      Op take = exchange("take", from - 1, {receive(Peer::member(0, from), 1e9)});
      take.turn = 0;
      taker.ops.push_back(take);
      Op use = compute("use", from - 1, 0);
      use.turn = 1;
      taker.ops.push_back(use);
    }
    s.works = {work(0.3)};
    s.programs = {taker};
    for (int from = 1; from < 4; ++from) {
      Program giver;
      giver.name = "giver";
      giver.where = {{0, from, 0}};
      giver.streams = {"main"};
      s.works.push_back(work(0.1 * (from - 1)));
      giver.ops = {compute("begin", 0, from), exchange("give", 0, {send(Peer::member(0, 0), 1e9)})};
      s.programs.push_back(giver);
    }
    CAPTURE(at_once);
    const Trace trace = simulate_in_child(one_job(s, first_endpoints(4)),
                                          *make_cluster(star(4, kBandwidth, 0)), ideal(Fidelity::flow));
    std::map<OpRun, double> all = ends(trace);
    const auto taken = [&](int from) { return all.at({0, 0, 0, 2 * (from - 1), 0, 0}); };
    const auto used = [&](int from) { return all.at({0, 0, 0, 2 * (from - 1) + 1, 0, 0}); };
    if (at_once == 1) {
      for (int from = 1; from < 4; ++from) CHECK(taken(from) == Approx(from));
    } else if (at_once == 2) {
      // 1 is alone for 0.1 s; then 1 and 2 run at half speed until 1 ends at 1.9 s with 0.1 GB of 2 left; 2
      // and 3 share until 2 ends at 2.1 s; 3 ends at 3 s.
      CHECK(taken(1) == Approx(1.9));
      CHECK(taken(2) == Approx(2.1));
      CHECK(taken(3) == Approx(3.0));
    } else {
      CHECK(taken(3) == Approx(3.0));
      CHECK(taken(1) > 2);
    }
    CHECK(used(1) == Approx(taken(1) + 0.3));
    CHECK(used(2) == Approx(std::max(taken(2), used(1)) + 0.3));
    CHECK(used(3) == Approx(std::max(taken(3), used(2)) + 0.3));
  }
}
