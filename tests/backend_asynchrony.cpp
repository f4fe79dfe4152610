// Tests asynchronous servers on real ranks: each push is applied exactly once, and its staleness matches the
// trace.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backend/host/host_executor.hpp"
#include "backend/host/launch.hpp"
#include "backend/runs/real_run.hpp"
#include "models/text/error.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/trace/asynchrony.hpp"
#include "tests/backend_run.hpp"
#include "tests/catch.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

void require(bool condition, const std::string& what) {  // for ranks: the launch reports the failure
  if (!condition) throw RunError(what);
}

// A push, with bounds from the trace on two instants that are not recorded exactly.
struct Bounds {
  int worker = 0;
  double read_after_s = 0, read_before_s = 0;        // when the weights for its gradient were read
  double applied_after_s = 0, applied_before_s = 0;  // when the gradient was applied
};

std::vector<Bounds> bounds_of(const Trace& trace, const std::vector<AppliedPush>& pushes, int server) {
  const Schedule& schedule = *trace.run.jobs.front().phases.back().schedule;
  std::vector<Bounds> bounds;
  for (const AppliedPush& push : pushes) {
    Bounds one;
    one.worker = push.worker;
    const auto worker = static_cast<std::size_t>(push.worker);
    for (std::size_t row = 0; row < trace.spans.op.size(); ++row) {
      if (trace.spans.rank_class[row] != server) continue;
      const int op = trace.spans.op[row], round = trace.spans.iteration[row];
      if (op == schedule.asynchrony->applies[worker] && round == push.round) {
        one.applied_after_s = trace.spans.ready_s[row];
        one.applied_before_s = trace.spans.end_s[row];
      } else if (op == schedule.asynchrony->sends[worker] && round == push.round - 1) {
        one.read_after_s = trace.spans.ready_s[row];
        one.read_before_s = trace.spans.end_s[row];
      }
    }
    bounds.push_back(one);
  }
  return bounds;
}

// Checks how many pushes of other workers were applied between reading a push's weights and applying the
// push: at least those certainly in between, at most those possibly in between. A server that is preempted
// between an action and its clock reading widens the bounds.
void check_staleness(std::vector<int> counted, const std::vector<Bounds>& bounds) {
  std::vector<int> least, most;
  for (const Bounds& push : bounds) {
    int surely = 0, maybe = 0;
    for (const Bounds& other : bounds) {
      if (other.worker == push.worker) continue;
      surely += other.applied_after_s > push.read_before_s && other.applied_before_s < push.applied_after_s;
      maybe += other.applied_before_s > push.read_after_s && other.applied_after_s < push.applied_before_s;
    }
    least.push_back(surely);
    most.push_back(maybe);
  }
  // The trace does not record which count belongs to which push. If every count is within its push's bounds,
  // the sorted counts are within the sorted bounds, too.
  for (std::vector<int>* values : {&counted, &least, &most}) std::sort(values->begin(), values->end());
  for (std::size_t i = 0; i < counted.size(); ++i)
    require(least[i] <= counted[i] && counted[i] <= most[i],
            fmt::format("of {} stalenesses in ascending order, number {} is {}; the trace allows {} to {}",
                        counted.size(), i + 1, counted[i], least[i], most[i]));
}

void check_run(const Scenario& scenario, const Plan& plan, const RealRunResult& run) {
  const int workers = scenario.strategy.data, rounds = real_repeats(scenario, *plan.schedule);
  const std::vector<AppliedPush> pushes = applied_pushes(run.trace, 0);
  require(pushes.size() == static_cast<std::size_t>(workers * rounds), "pushes were lost or applied twice");
  std::map<std::pair<int, int>, int> times;
  for (const AppliedPush& push : pushes)
    require(++times[{push.worker, push.round}] == 1, "a push was applied twice");
  for (const RankReport& report : run.reports) {
    if (report.learned.staleness.empty()) continue;  // a worker, not a server
    require(report.learned.staleness.size() == pushes.size(), "a server applied another number of pushes");
  }
  const std::vector<int>& counted = run.reports[static_cast<std::size_t>(workers)].learned.staleness;
  const int server =
      static_cast<int>(std::find_if(run.trace.classes.begin(), run.trace.classes.end(),
                                    [&](const RankClass& ranks) {
                                      return ranks.role == plan.schedule->asynchrony->server_role;
                                    }) -
                       run.trace.classes.begin());
  check_staleness(counted, bounds_of(run.trace, pushes, server));
  if (scenario.strategy.parameter_server.mode == ParameterServer::Mode::stale_synchronous) {
    // A worker is at most `staleness` rounds ahead, which limits the number of other workers' pushes in
    // between.
    const int most = (workers - 1) * (2 * scenario.strategy.parameter_server.staleness + 1);
    for (const int staleness : counted) require(staleness <= most, "a gradient is too stale");
  }
}

}  // namespace

TEST_CASE("Asynchronous servers apply every push once, as stale as the trace says") {
  const std::string mode = GENERATE("async", "stale-synchronous");
  const int servers = GENERATE(1, 2);
  CAPTURE(mode, servers);
  const Scenario scenario = read_scenario_text(
      kDeepPerceptron, "deep.toml",
      {"cluster.nodes=4", "training.optimizer=\"sgd\"", "strategy.gradients=\"parameter-server\"",
       "strategy.bucket_mb=0.02", "strategy.parameter_server.mode=\"" + mode + "\"",
       mode == "async" ? "run.steps=3" : "strategy.parameter_server.staleness=1", "run.steps=3",
       "strategy.parameter_server.servers=" + std::to_string(servers)});
  const Plan plan = write_schedule(scenario);
  LaunchOptions options;
  options.ranks = plan.schedule->ranks();
  std::string failure;
  try {
    launch(options, [&](Transport& transport) {
      const auto run = run_rank(scenario, plan, transport, host_executor());
      if (run) check_run(scenario, plan, *run);
    });
  } catch (const std::exception& error) {
    failure = error.what();
  }
  CAPTURE(failure);
  CHECK(failure.empty());
}
