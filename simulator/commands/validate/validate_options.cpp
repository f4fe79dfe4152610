// Adds the options of `rehearse validate`.
#include <memory>

#include "simulator/commands/validate/validate.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_validate(CLI::App& options) {
  const auto arguments = std::make_shared<ValidateArguments>();
  options
      .add_option("INPUT", arguments->inputs,
                  "Recorded runs, folders of them, or tables (shipped names or files); default: all "
                  "shipped tables")
      ->check(shipped_or_file({"benchmarks/measurements"}));
  add_repeated(options, "--set", arguments->overrides, "Override a key of every prediction: key=value");
  options.add_flag("--uncertainty", arguments->uncertainty,
                   "Give predictions as intervals, and how many measurements are inside");
  options.add_option("--explain", arguments->explain,
                     "Explain one row of a table: its breakdown, and the step time without each term");
  add_format(options, arguments->format);
  return [arguments](const Streams& streams) {
    run_validate(*arguments, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
