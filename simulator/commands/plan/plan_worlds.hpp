// Lists the worlds for which plans are searched: clusters, their sizes, global batches, and hypothetical
// changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/commands/plan/plan.hpp"
#include "simulator/commands/plan/plan_question.hpp"

namespace rehearse {

struct PlanWorld {
  std::string name;  // "16 x dgx-h100", or for a what-if: "network twice as fast"
  bool what_if = false;
  bool searched = true;      // false: only the best plan of the first world is simulated in it
  double memory_factor = 1;  // factor on the devices' memory
  PlanQuestion question;
  std::vector<std::pair<std::string, std::string>> settings;  // keys that differ from the scenario's
};

// Returns the scenario's own world, or those of --cluster, --nodes and --global-batch; then, with --what-if,
// the first of these with other networks and memory, and with a slow node. Throws InputError for an
// impossible world.
std::vector<PlanWorld> plan_worlds(const PlanArguments& arguments, const std::string& text,
                                   const std::string& path);

}  // namespace rehearse
