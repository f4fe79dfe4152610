// Defines the question of a search for plans: a model, its training, and a cluster, without the keys that
// plans set.
#pragma once

#include <string>
#include <vector>

#include "simulator/planner/plan_choice.hpp"
#include "simulator/scenario/reading/overrides.hpp"
#include "topologies/faster.hpp"

namespace rehearse {

struct PlanQuestion {
  std::string path;   // path of the scenario file
  std::string text;   // a scenario file without the keys that plans set
  Scenario scenario;  // that text, on the entire cluster, with a strategy for one device
  Faster factors;     // speed of the cluster relative to that of the text
};

// Parses the question from `text`, the scenario file at `path`. Throws InputError in the same cases as the
// reader of a scenario.
PlanQuestion plan_question(const std::string& text, const std::string& path, const Overrides& overrides);

// Returns the scenario with a plan's settings. Throws InputError if the plan is invalid for it.
Scenario scenario_of(const PlanQuestion& question, const PlanChoice& plan);
// Returns the same as the text of a scenario file, preceded by `comment`.
std::string scenario_file_text(const PlanQuestion& question, const PlanChoice& plan,
                               const std::string& comment);
// Returns why a scenario with this split is refused; empty if the question's model can be split in this way.
std::string refusal(const PlanQuestion& question, const CoreChoice& split);

}  // namespace rehearse
