// Tests that the points of a sweep, which share schedules, have the results that each has alone.
#include <algorithm>
#include <csignal>
#include <map>
#include <stdexcept>

#include "simulator/commands/predicting/known_schedules.hpp"
#include "simulator/commands/sweep/sweep_points.hpp"
#include "simulator/commands/sweep/sweep_row.hpp"
#include "simulator/commands/tasks/worker_pool.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

// A small transformer whose stages, gradients and network all count.
const char* const kSharedScenario = R"([model.transformer]
layers = 8
hidden = 512
heads = 8
vocabulary = 5000
sequence_length = 128
[training]
global_batch = 64
micro_batch = 1
[cluster]
preset = "dgx-a100"
nodes = 2
[strategy]
)";

struct SharedSweep {
  const char* strategy;
  std::vector<std::string> vary;
  int schedules;  // that are written for all points
};

const std::vector<SharedSweep> kSharedSweeps = {
    {"tensor = 2\npipeline = 2\n", {"cluster.nic_gbps=50..53"}, 1},
    {"tensor = 2\npipeline = 2\n", {"cluster.nic_gbps=50,100", "strategy.zero_stage=0..2"}, 3},
    {"pipeline = 4\n", {"cluster.fabric.latency_us=1,2", "cluster.node.nvlink_gb_per_s=100,300"}, 1},
    {"pipeline = 2\n", {"strategy.pipeline=1,2,4", "cluster.nic_gbps=50,100"}, 3},
    {"", {"model.transformer.layers=4,8", "training.micro_batch=1,2", "cluster.nic_gbps=50,100"}, 4},
    {"pipeline = 2\n", {"training.recompute=none,full", "cluster.nic_gbps=50,100,200"}, 2},
    // An oversubscribed fabric has a note of its own; more nodes have another schedule.
    {"", {"cluster.oversubscription=1.0,2.0", "cluster.nic_gbps=50,100"}, 2},
    {"", {"cluster.nodes=1,2", "cluster.nic_gbps=50,100"}, 2},
    // Of these, each point has a schedule that follows from its rates.
    {"all_reduce = \"auto\"\n", {"cluster.nic_gbps=1,50,100"}, 3},
    {"fusion_mb = 2\ncycle_ms = 0.2\n", {"cluster.nic_gbps=50,100"}, 2},
    {"gradients = \"local-sgd\"\nlocal_sgd.every = 2\n", {"cluster.nic_gbps=50,100"}, 1},
    // A point that cannot be planned, between others.
    {"", {"strategy.pipeline=1,16,2", "cluster.nic_gbps=50,100"}, 2},
};

Sweep shared_sweep(const SharedSweep& c, const std::string& path) {
  Sweep sweep;
  sweep.scenario_path = path;
  sweep.scenario_text = std::string(kSharedScenario) + c.strategy;
  for (const std::string& vary : c.vary) sweep.axes.push_back(parse_vary(vary));
  return sweep;
}

Scenario scenario_at(const Sweep& sweep, std::int64_t point) {
  return read_scenario_text(sweep.scenario_text, sweep.scenario_path, sweep.overrides_of(point));
}

// Returns a point's line as a prediction of its own has it.
std::string line_alone(const Sweep& sweep, const SweepRows& rows, std::int64_t point) {
  try {
    return rows.line(point, predict(scenario_at(sweep, point), Where::child).result());
  } catch (const InputError& error) {
    return rows.line(point, PointStatus::refused, error.what());
  }
}

}  // namespace

TEST_CASE("points that share schedules have the results that each has alone") {
  for (const SharedSweep& c : kSharedSweeps) {
    CAPTURE(c.strategy, c.vary);
    const Scratch scratch;
    const Sweep sweep =
        shared_sweep(c, scratch.write("scenario.toml", std::string(kSharedScenario) + c.strategy));
    const SweepRows rows(sweep, SweepFormat::jsonl);
    std::string arguments = "sweep " + sweep.scenario_path + " --format jsonl --jobs 2";
    for (const std::string& vary : c.vary) arguments += " --vary " + vary;
    std::vector<std::string> together = lines_of(run_rehearse(arguments).out), alone;
    for (std::int64_t point = 1; point <= sweep.points(); ++point)
      for (const std::string& line : lines_of(line_alone(sweep, rows, point))) alone.push_back(line);
    std::sort(together.begin(), together.end());
    std::sort(alone.begin(), alone.end());
    CHECK(together == alone);
  }
}

TEST_CASE("a schedule is written once for all rates, and again for anything else") {
  for (const SharedSweep& c : kSharedSweeps) {
    CAPTURE(c.strategy, c.vary);
    const Sweep sweep = shared_sweep(c, "scenario.toml");
    KnownSchedules known;
    for (std::int64_t point = 1; point <= sweep.points(); ++point) {
      try {
        const Scenario scenario = scenario_at(sweep, point);
        const Plan plan = known.plan_of(scenario), own = write_schedule(scenario);
        CHECK(plan.notes == own.notes);
        CHECK(plan.endpoints == own.endpoints);
        CHECK(plan.stage_layers == own.stage_layers);
      } catch (const InputError&) {
        // of the point that cannot be planned
      }
    }
    CHECK(known.written() == c.schedules);
  }
}

TEST_CASE("points come in an order in which chosen axes vary fastest, each point once") {
  Sweep sweep;
  sweep.axes = {parse_vary("a.a=1,2"), parse_vary("a.b=1,2,3"), parse_vary("a.c=1,2")};
  const auto order = [&](const std::vector<bool>& fast) {
    std::vector<std::int64_t> points;
    for (std::int64_t place = 0; place < sweep.points(); ++place)
      points.push_back(sweep.point_at(place, fast));
    return points;
  };
  using Points = std::vector<std::int64_t>;
  CHECK(order({false, false, false}) == Points{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(order({false, false, true}) == Points{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  CHECK(order({true, false, false}) == Points{1, 7, 2, 8, 3, 9, 4, 10, 5, 11, 6, 12});
  CHECK(order({false, true, false}) == Points{1, 3, 5, 2, 4, 6, 7, 9, 11, 8, 10, 12});
}

TEST_CASE("workers keep what they prepare, and one that dies or fails costs its own task alone") {
  std::int64_t next = 0;
  int prepared = 0;
  std::map<std::int64_t, TaskEnd> ends;
  WorkerPool pool;
  pool.jobs = 2;
  pool.in_a_row = 3;
  pool.next = [&] { return next < 12 ? next++ : -1; };
  pool.prepare = [&](std::int64_t task) -> std::function<std::string()> {
    ++prepared;
    if (task == 2) raise(SIGKILL);
    return [&prepared, task]() -> std::string {
      if (task == 4) raise(SIGKILL);
      if (task == 6) throw std::runtime_error("no");
      if (task == 8) return std::string(300'000, 'i');
      return std::to_string(prepared);
    };
  };
  pool.ended = [&](const TaskEnd& end) {
    CHECK(ends.count(end.task) == 0);
    ends[end.task] = end;
  };
  pool.tick = [] {};
  run(pool);
  REQUIRE(ends.size() == 12);
  CHECK(ends[0].output == "1");
  CHECK(ends[1].output == "2");
  CHECK(ends[2].failure == "the simulation was ended by signal 9 (Killed)");
  CHECK(ends[3].output == "1");
  CHECK(ends[4].failure == "the simulation was ended by signal 9 (Killed)");
  CHECK(ends[5].output == "3");
  CHECK(ends[6].failure == "the simulation ended without a result");
  CHECK(ends[8].output == std::string(300'000, 'i'));
  SECTION("when a result cannot be taken, the others are ended") {
    next = 0;
    pool.prepare = [](std::int64_t task) -> std::function<std::string()> {
      return [task] {
        if (task > 0) pause();
        return std::string("x");
      };
    };
    pool.ended = [](const TaskEnd&) { throw RunError("full"); };
    CHECK_THROWS_AS(run(pool), RunError);
    CHECK((waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
  }
}
