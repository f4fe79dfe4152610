// Adds the options of `rehearse simulate`.
#include <memory>

#include "simulator/commands/simulate/simulate.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_simulate(CLI::App& options) {
  const auto arguments = std::make_shared<SimulateArguments>();
  const auto whole = std::make_shared<bool>(false);
  enum class Advice { automatic, always, never };
  static constexpr std::array<std::string_view, 3> kAdviceNames = {"auto", "always", "never"};
  const auto advice = std::make_shared<Advice>(Advice::automatic);
  options.add_option("SCENARIO", arguments->scenario, "A scenario file; - for standard input")->required();
  add_repeated(options, "--set", arguments->overrides, "Override a key of the scenario: key=value");
  add_format(options, arguments->format);
  options
      .add_option("--trace", arguments->trace, "Write the timeline (.json or .json.gz; Perfetto opens it)")
      ->check(file_name());
  options.add_flag("--memory", arguments->memory,
                   "Tell the largest tensors at the peak of the fullest device (text and JSON)");
  options
      .add_option("--memory-trace", arguments->memory_trace,
                  "Write the fullest device's allocations in the last step (.pickle; pytorch.org/memory_viz "
                  "opens it)")
      ->check(file_name());
  options.add_flag("--no-fold", *whole, "Simulate every rank instead of one of each kind");
  options.add_flag(
      "--strict", arguments->strict,
      "Refuse a scenario that does not fit into device memory (exit status 1) instead of warning");
  options.add_flag("--uncertainty", arguments->uncertainty,
                   "Give the step time as an interval, from the uncertainty of each constant");
  add_choice<Advice>(options, "--advice", *advice, kAdviceNames,
                     "Try changes that could make the step shorter: auto (in text), always or never");
  add_progress(options, arguments->progress_lines);
  return [arguments, whole, advice](const Streams& streams) {
    if (*whole) arguments->overrides.emplace_back("simulation.fold=false");
    arguments->advice =
        *advice == Advice::always || (*advice == Advice::automatic && arguments->format == Format::text);
    run_simulate(*arguments, streams.in, streams.out, streams.err);
    return kDone;
  };
}

}  // namespace rehearse
