// Implements `rehearse launch`: writes a scenario as the file that starts the real job.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/printable.hpp"
#include "simulator/commands/launch/launch.hpp"
#include "simulator/jobs/launch/launch_files.hpp"
#include "simulator/report/wrap.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"

namespace rehearse {

void run_launch(const LaunchArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err) {
  const auto frameworks = launch_frameworks();
  const auto framework = std::find_if(frameworks.begin(), frameworks.end(),
                                      [&](const auto& one) { return one.name == arguments.framework; });
  const Scenario scenario =
      read_command_scenario(arguments.scenario, arguments.overrides, in, {{"--out", arguments.out}});
  const LaunchFile file = framework->write(scenario);
  if (!file.possible) {
    std::string reasons;
    for (const std::string& reason : file.cannot) reasons += "\n" + wrapped(printable(reason));
    throw RunError(fmt::format("{} cannot run this job:{}", framework->title, reasons));
  }
  if (!file.cannot.empty())
    err << "What " << framework->title << " does differently from the scenario, or leaves to you:\n";
  for (const std::string& sentence : file.cannot) err << wrapped(printable(sentence)) << '\n';
  if (arguments.out.empty())
    out << file.text;
  else
    write_whole_file(arguments.out, file.text);
}

}  // namespace rehearse
