// Flows that are alone on their links only wait, and streams run ahead of SimGrid's clock where nothing
// depends on it. These tests compare the times of ops with closed forms, and with runs in which all streams
// keep to the clock and SimGrid carries all flows.
#include "simulator/strategies/strategy.hpp"
#include "tests/catch.hpp"
#include "tests/engine_support.hpp"
#include "tests/random_axes.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

struct Arrival {
  double start_s = 0, bytes = 0;
};

// Returns when each of several flows ends that share one link equally: while k are under way, each carries
// bandwidth / k.
std::vector<double> shared_ends(std::vector<Arrival> flows, double bandwidth) {
  std::vector<double> ends(flows.size(), 0);
  double now_s = 0;
  for (std::size_t left = flows.size(); left > 0;) {
    int active = 0;
    double next_s = 1e9;
    for (const Arrival& f : flows) active += f.bytes > 0 && f.start_s <= now_s;
    for (const Arrival& f : flows) {
      if (f.bytes <= 0) continue;
      next_s = std::min(next_s, f.start_s > now_s ? f.start_s : now_s + f.bytes * active / bandwidth);
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      Arrival& f = flows[i];
      if (f.bytes <= 0 || f.start_s > now_s) continue;
      f.bytes -= (next_s - now_s) * bandwidth / active;
      if (f.bytes > 1) continue;
      f.bytes = 0;
      ends[i] = next_s;
      --left;
    }
    now_s = next_s;
  }
  return ends;
}

// Each source waits and then sends to the one sink.
Schedule senders(const std::vector<Arrival>& flows) {
  Schedule s;
  s.roles = {role("sink", {{"sink", 1}})};
  Program sink;
  sink.name = "sink";
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const int number = static_cast<int>(i);
    const std::string name = "source" + std::to_string(i);
    s.roles.push_back(role(name, {{name, 1}}));
    Program source;
    source.name = name;
    source.role = number + 1;
    source.streams = {"network"};
    source.ops = {host("wait", 0), exchange("send", 0, {send(Peer::each(0), flows[i].bytes, number)})};
    source.ops[0].seconds = flows[i].start_s;
    sink.streams.push_back(name);
    sink.ops.push_back(exchange("receive" + std::to_string(i), number,
                                {receive(Peer::each(number + 1), flows[i].bytes, number)}));
    s.programs.push_back(source);
  }
  s.programs.insert(s.programs.begin(), sink);
  return s;
}

}  // namespace

TEST_CASE("flows that join one another on a link share it equally from then on") {
  const std::vector<std::vector<Arrival>> cases = {
      {{0, 1e9}},
      {{0, 1e9}, {1, 1e9}},    // the second starts as the first ends
      {{0, 1e9}, {0.5, 1e9}},  // ends at 1.5 and 2 s
      {{0, 1e9}, {0, 1e9}},
      {{0, 1e9}, {0.5, 1e8}, {0.9, 1e8}},  // the first is joined twice, and alone between and after
      {{0, 4e9}, {0.5, 1e8}, {0.5, 1e8}, {2, 1e9}},
      {{0.25, 3e8}, {0, 2e9}, {0.25, 5e8}, {3, 1e6}},
  };
  for (const std::vector<Arrival>& flows : cases)
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::automatic}) {
      CAPTURE(&flows - cases.data(), name(fidelity));
      const int ranks = static_cast<int>(flows.size()) + 1;
      const Trace trace = simulate_in_child(one_job(senders(flows), first_endpoints(ranks)),
                                            *make_cluster(star(ranks, kBandwidth, 0)), ideal(fidelity));
      const std::vector<double> expected = shared_ends(flows, kBandwidth);
      const std::map<OpRun, double> found = ends(trace);
      for (int i = 0; i + 1 < ranks; ++i)
        CHECK(found.at({0, 0, 0, i, 0, 0}) == Approx(expected[static_cast<std::size_t>(i)]).epsilon(1e-9));
    }
}

TEST_CASE("streams that run ahead of the clock end their ops as those that keep to it") {
  RandomAxes random(11);
  const int cases = kSanitized ? 4 : 24;
  for (int i = 0; i < cases; ++i) {
    const RandomFabric& fabric = kRandomFabrics[i % 4];
    const Scenario scenario = random.scenario(fabric, 8);
    INFO(scenario.text);
    const Plan plan = write_schedule(scenario);
    for (const Fidelity fidelity : {Fidelity::flow, Fidelity::automatic, Fidelity::analytic})
      for (const bool fold : {true, false}) {
        CAPTURE(name(fidelity), fold);
        Run run;
        run.jobs.push_back({"job", {{plan.schedule, plan.schedule->repeats(1)}}, plan.endpoints});
        EngineOptions options = scenario.engine;
        options.fidelity = fidelity;
        options.fold = fold;
        const Trace ahead = simulate_in_child(run, *scenario.cluster, options);
        Event harmless;  // where there are events, everything happens in time
        harmless.time_s = 1e6;
        harmless.endpoint = 0;
        run.events = {harmless};
        const Trace in_time = simulate_in_child(run, *scenario.cluster, options);
        CHECK(worst_difference(ahead, in_time) < 1e-9);
        CHECK(ahead.bytes_total == Approx(in_time.bytes_total).epsilon(1e-12));
      }
  }
}
