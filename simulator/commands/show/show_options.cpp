// Adds the options of `rehearse list` and of `rehearse show`.
#include <memory>

#include "simulator/commands/show/show.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_list(CLI::App& options) {
  const auto what = std::make_shared<std::string>();
  options.add_option("WHAT", *what, "models, clusters, devices, strategies, frameworks or inputs")
      ->required()
      ->check(one_of(kListNames));
  return [what](const Streams& streams) {
    run_list(*what, streams.out);
    return kDone;
  };
}

RunSubcommand add_show(CLI::App& options) {
  const auto name = std::make_shared<std::string>();
  options
      .add_option("NAME", *name,
                  "The name of a model, cluster, device or strategy, or a file that describes a model, "
                  "cluster, device or scenario")
      ->required()
      ->check(shipped_or_file(
          {"models", "topologies", "topologies/devices", "simulator/strategies", "simulator/frameworks",
           "simulator/input/datasets", "simulator/input/loaders", "simulator/input/preparations",
           "simulator/input/storages", "simulator/input/checkpoints"},
          strategy_names()));
  return [name](const Streams& streams) {
    run_show(*name, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
