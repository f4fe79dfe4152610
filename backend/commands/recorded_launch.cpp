#include "backend/commands/recorded_launch.hpp"

#include "backend/host/host_executor.hpp"
#include "models/text/error.hpp"

namespace rehearse {

void launch_recorded(const LaunchOptions& options, const RunOutput& output, const Scenario& scenario,
                     const Plan& plan, const Measurement& measurement,
                     const std::function<void(Transport&, Journal*)>& body) {
  if (output.trace.empty()) return launch(options, [&](Transport& transport) { body(transport, nullptr); });
  Journal journal(*plan.schedule, real_repeats(scenario, *plan.schedule));
  try {
    launch(options, [&](Transport& transport) { body(transport, &journal); });
  } catch (const RunError& error) {
    Measurement own = measurement;
    own.processor = host_executor().arithmetic(1)->device_name();
    throw RunError(write_unfinished_run(output, scenario, plan, journal, std::move(own), error.what()));
  }
}

}  // namespace rehearse
