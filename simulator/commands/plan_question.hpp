// What a search for plans is asked: a model, its training, and a cluster, without the keys that plans set.
#pragma once

#include <string>
#include <vector>

#include "simulator/planner/plan_choice.hpp"
#include "topologies/faster.hpp"

namespace rehearse {

struct PlanQuestion {
  std::string path;   // of the scenario file
  std::string text;   // a scenario file without the keys that plans set
  Scenario scenario;  // that text, on the whole cluster, with a strategy of one device
  Faster factors;     // by which the cluster differs from that of the text
};

// `text`: of the scenario file at `path`; `overrides`: "key=value". InputError as for reading a scenario.
PlanQuestion plan_question(const std::string& text, const std::string& path,
                           const std::vector<std::string>& overrides);

// The scenario with a plan's settings. InputError if the plan is none for it.
Scenario scenario_of(const PlanQuestion& question, const PlanChoice& plan);
// The same as a scenario file, with `comment` in front of it.
std::string scenario_file_text(const PlanQuestion& question, const PlanChoice& plan,
                               const std::string& comment);
// Empty if the question's model can be split so; else why a scenario that does is refused.
std::string refusal(const PlanQuestion& question, const CoreChoice& split);

}  // namespace rehearse
