// Bounds and simulates plans of several worlds until no other plan can be the best of its world.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/plan/plan_simulation.hpp"
#include "simulator/commands/plan/plan_worlds.hpp"
#include "simulator/planner/plan_search.hpp"

namespace rehearse {

class SharedResults;

struct SimulatedPlan {
  Candidate candidate;
  PlanFigures figures;
};

struct PlanLimits {
  SpaceLimits space;
  std::optional<double> reserve_bytes;
  double reserve_share = 0;  // of a device's memory; replaces reserve_bytes
  double tolerance = 0;
  double most_ops = 0;                               // SimulationEffort::most_ops
  double budget = 0, deadline_s = 0, least_mfu = 0;  // of the entire training run; 0: none
};

// A world and what is known about its plans.
struct SearchedWorld {
  PlanWorld world;
  MemoryLimit memory;
  OperatingRates rates;
  double most_step_s = 0;  // longest step that the constraints allow; 0: no limit
  bool allows(double step_time_s) const { return most_step_s <= 0 || step_time_s <= most_step_s; }
  std::unique_ptr<PlanSearch> search;
  std::vector<SimulatedPlan> simulated;                 // plans that fit, the fastest first
  std::int64_t too_large = 0, refused = 0, failed = 0;  // of plans that were written or simulated
  std::string first_failure;
  std::int64_t ruled_out_by_bound = 0;        // plans that were not simulated because they cannot be faster
  std::int64_t ruled_out_by_limit = 0;        // plans that were not simulated because they exceed most_step_s
  std::optional<SimulatedPlan> least_memory;  // the smallest of the plans that were too large
};

// The progress of a search, to be shown to the user.
struct PlanProgress {
  std::int64_t bounded = 0, plans = 0, simulated = 0;
  double best_s = 0;
  std::string best;
};

// Applies the limits to a world. Throws InputError if a limit needs something that the scenario does not
// state.
SearchedWorld limited(PlanWorld world, const PlanLimits& limits);

// Simulates in children, `jobs` at once, together with other processes that share `results` (null: alone).
// The outcome does not depend on which process simulates what. The searches retain pointers to the worlds and
// the limits, so neither may be moved or destroyed while a search is in use.
void simulate(std::vector<SearchedWorld>& worlds, const PlanLimits& limits, int jobs, SharedResults* results,
              const std::function<void(const PlanProgress&)>& progress);

}  // namespace rehearse
