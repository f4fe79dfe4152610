// Adds the options of `rehearse collective`.
#include <memory>

#include "simulator/commands/collective/collective.hpp"
#include "simulator/commands/predicting/collective_time.hpp"
#include "simulator/costs/transfer.hpp"
#include "simulator/schedule/collective.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace rehearse {

RunSubcommand add_collective(CLI::App& options) {
  const auto arguments = std::make_shared<CollectiveArguments>();
  options.add_option("KIND", arguments->kind, "all-reduce, all-gather, reduce-scatter, all-to-all, ...")
      ->required()
      ->check(one_of(kExchangeNames));
  options.add_option("--cluster", arguments->cluster, "The name of a cluster, or a file that describes one")
      ->required()
      ->check(shipped_or_file({"topologies"}));
  options.add_option("--nodes", arguments->nodes, "Nodes (default: those that --devices fill, or 1)")
      ->check(CLI::Range(1, 1'000'000));
  options
      .add_option("--devices", arguments->devices,
                  "Use only so many devices: evenly over --nodes, else the first ones (default: all)")
      ->check(CLI::Range(2, 1'000'000));
  options
      .add_option("--devices-per-node", arguments->devices_per_node,
                  "Use only so many devices of each node (default: all)")
      ->check(CLI::Range(1, 4096));
  add_repeated(options, "--set", arguments->overrides, "Override a key of the cluster: cluster.key=value");
  options.add_option("--bytes", arguments->bytes,
                     "Sizes: 8, 64K, 1M, 8G, 8..8G*2, 1M..16M+1M (default: 8..8G*2)");
  options
      .add_option("--algorithm", arguments->algorithm,
                  "Algorithm of an all-reduce: ring, tree, ... (default: auto)")
      ->check(one_of(kAlgorithmNames));
  options
      .add_option("--software", arguments->software,
                  "Whose calls they are: nccl-tests, xla (default: nccl-tests)")
      ->check(one_of(kSoftwareNames));
  options.add_flag("--alternatives", arguments->alternatives,
                   "Give the times with every algorithm and protocol that NCCL could choose, too");
  options.add_flag("--uncertainty", arguments->uncertainty,
                   "Give times as intervals, from the uncertainty of each constant of the links");
  add_format(options, arguments->format);
  return [arguments](const Streams& streams) {
    run_collective(*arguments, streams.out);
    return kDone;
  };
}

}  // namespace rehearse
