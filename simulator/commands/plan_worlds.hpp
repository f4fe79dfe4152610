// The worlds that plans are searched for: clusters, their sizes, batches, and what might be different.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/commands/commands.hpp"
#include "simulator/commands/plan_question.hpp"

namespace rehearse {

struct PlanWorld {
  std::string name;  // "dgx-h100 x 16", or of a what-if: "network twice as fast"
  bool what_if = false;
  bool searched = true;      // false: only the best plan of the first world is simulated in it
  double memory_factor = 1;  // on the devices' memory
  PlanQuestion question;
  std::vector<std::pair<std::string, std::string>> settings;  // keys that tell the world from the scenario's
};

// The scenario's own world first, or those of --cluster, --nodes and --global-batch; then, with --what-if,
// the first one's with other networks and memory, and with a slow node. InputError for a world that cannot
// be.
std::vector<PlanWorld> plan_worlds(const PlanArguments& arguments, const std::string& text,
                                   const std::string& path);

}  // namespace rehearse
