// Implements `rehearse collective`: predicts a collective, as nccl-tests measures it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct CollectiveArguments {
  std::string kind;                     // one of kExchangeNames (collective_time.hpp)
  std::string cluster;                  // name of a preset, or a path
  int nodes = 0, devices = 0;           // 0: follows from the other, or from the cluster's file
  int devices_per_node = 0;             // 0: follows from the other two, or from the cluster's file
  std::vector<std::string> overrides;   // "cluster.key=value"
  std::string bytes = "8..8G*2";        // collective_sizes.hpp
  std::string algorithm = "auto";       // for all-reduces
  std::string software = "nccl-tests";  // one of kSoftwareNames (costs/transfer.hpp)
  bool uncertainty = false;             // reports times as intervals
  bool alternatives = false;            // reports the times of other algorithms and protocols
  Format format = Format::text;
};
// Predicts the table of nccl-tests for a collective that is alone on the cluster.
void run_collective(const CollectiveArguments& arguments, std::ostream& out);

RunSubcommand add_collective(CLI::App& options);

}  // namespace rehearse
