// Asynchronous servers on real ranks: every push is applied exactly once, and how stale each was is what the
// trace says.
#include <fmt/format.h>

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

void require(bool condition, const std::string& what) {  // in a rank, whose failure the launch tells
  if (!condition) throw RunError(what);
}

std::map<int, long> histogram(const std::vector<int>& values) {
  std::map<int, long> counts;
  for (const int value : values) ++counts[value];
  return counts;
}

// From the trace alone: of each push, how many of other workers were applied after the weights it was
// computed from were read.
std::vector<int> staleness_by_trace(const std::vector<AppliedPush>& pushes) {
  std::vector<int> staleness;
  for (const AppliedPush& push : pushes) {
    int others = 0;
    for (const AppliedPush& other : pushes)
      others +=
          other.worker != push.worker && other.applied_s > push.read_s && other.applied_s < push.applied_s
              ? 1
              : 0;
    staleness.push_back(others);
  }
  return staleness;
}

void check_run(const Scenario& scenario, const Plan& plan, const RealRunResult& run) {
  const int workers = scenario.strategy.data, rounds = real_repeats(scenario, *plan.schedule);
  const std::vector<AppliedPush> pushes = applied_pushes(run.trace, 0);
  require(pushes.size() == static_cast<std::size_t>(workers * rounds), "pushes were lost or applied twice");
  std::map<std::pair<int, int>, int> times;
  for (const AppliedPush& push : pushes)
    require(++times[{push.worker, push.round}] == 1, "a push was applied twice");
  for (const RankReport& report : run.reports) {
    if (report.learned.staleness.empty()) continue;  // a worker
    require(report.learned.staleness.size() == pushes.size(), "a server applied another number of pushes");
  }
  // The first server's; reading weights and applying gradients exclude each other, but the trace's times are
  // taken just before and after: what happens in the microseconds between may be told in either order.
  const std::vector<int>& counted = run.reports[static_cast<std::size_t>(workers)].learned.staleness;
  const std::map<int, long> by_count = histogram(counted), by_trace = histogram(staleness_by_trace(pushes));
  long apart = 0;
  for (int value = 0; value <= 4 * workers; ++value) {
    const auto at = [&](const std::map<int, long>& counts) {
      const auto found = counts.find(value);
      return found == counts.end() ? 0 : found->second;
    };
    apart += std::abs(at(by_count) - at(by_trace));
  }
  require(apart <= static_cast<long>(pushes.size()) / 20,
          fmt::format("{} of {} pushes have another staleness in the trace", apart, pushes.size()));
  if (scenario.strategy.parameter_server.mode == ParameterServer::Mode::stale_synchronous) {
    // A worker is at most so many rounds ahead, so that no more pushes of others can come between.
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
