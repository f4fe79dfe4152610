#include "backend/emulate_command.hpp"

#include <fmt/format.h>

#include <istream>
#include <ostream>

#include "backend/emulate/network.hpp"
#include "backend/emulate/shaping.hpp"
#include "backend/host/host_executor.hpp"
#include "backend/recorded_launch.hpp"
#include "models/base/error.hpp"

namespace rehearse {
namespace {

// What ranks send each other, and rank 0's word with each of them.
std::vector<Conversation> conversations(const Plan& plan, const Wiring& wiring) {
  std::vector<Conversation> all;
  for (const Channel& channel : wiring.channels())
    all.push_back({plan.endpoints[channel.from], plan.endpoints[channel.to]});
  for (std::size_t r = 1; r < plan.endpoints.size(); ++r)
    all.push_back({plan.endpoints[0], plan.endpoints[r]});
  return all;
}

}  // namespace

void run_emulate(const ScenarioArguments& arguments, std::istream& in, std::ostream& out) {
  const Scenario scenario = read_run_scenario(arguments.scenario, arguments.overrides, in);
  const Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  if (const std::string missing = emulation_missing(); !missing.empty()) throw RunError(missing);
  const Wiring wiring(*plan.schedule, *scenario.cluster, plan.endpoints, scenario.engine.chunk_bytes);
  EmulatedNetwork network(emulation_graph(*scenario.cluster, plan.endpoints, conversations(plan, wiring),
                                          kMostEmulatedBandwidth));
  const Executor executor = host_executor(scenario.run.collectives);
  Measurement measurement = describe_run(scenario, "emulated", "TCP", arguments.command);
  for (const std::string& missing : network.left_out()) measurement.notes.push_back(missing);

  LaunchOptions options;
  options.ranks = plan.schedule->ranks();
  options.patience_s = arguments.patience_s;
  options.enter = [&](int rank) { network.enter(plan.endpoints[rank]); };
  options.first_address = network.address(plan.endpoints.front());
  const auto body = [&](Transport& transport, Journal* journal) {
    auto run = run_rank(scenario, plan, transport, executor, {arguments.check_replicas, journal});
    if (run) write_run_result(arguments.output, scenario, plan, std::move(*run), measurement, out);
  };
  launch_recorded(options, arguments.output, scenario, plan, measurement, body);
}

}  // namespace rehearse
