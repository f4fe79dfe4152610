// Adds the options of `rehearse compare`.
#include <memory>

#include "simulator/commands/compare/compare.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_compare(CLI::App& options) {
  const auto arguments = std::make_shared<CompareArguments>();
  options.add_option("SCENARIO", arguments->scenarios, "Scenario files; the first is the base")->required();
  add_repeated(options, "--variant", arguments->variants,
               "Add the first scenario with changes: \"key=value key=value\"");
  add_repeated(options, "--set", arguments->overrides, "Override a key of all scenarios: key=value");
  add_format(options, arguments->format);
  options.add_flag("--strict", arguments->strict,
                   "Leave out scenarios that do not fit into device memory (exit status 1) instead of warning");
  return [arguments](const Streams& streams) {
    return run_compare(*arguments, streams.in, streams.out, streams.err);
  };
}

}  // namespace rehearse
