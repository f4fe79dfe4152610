// Bounds and simulates plans of several worlds until no other plan can be the best of its world.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/plan_simulation.hpp"
#include "simulator/commands/plan_worlds.hpp"
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
  double reserve_share = 0;  // of a device's memory, instead
  double tolerance = 0;
  double most_ops = 0;                               // simulate_plan()
  double budget = 0, deadline_s = 0, least_mfu = 0;  // of the whole training; 0: none
};

// A world and what has been found out about its plans.
struct SearchedWorld {
  PlanWorld world;
  MemoryLimit memory;
  OperatingRates rates;
  double most_step_s = 0;  // that the constraints allow; 0: no limit
  bool allows(double step_time_s) const { return most_step_s <= 0 || step_time_s <= most_step_s; }
  std::unique_ptr<PlanSearch> search;
  std::vector<SimulatedPlan> simulated;                 // that fit, the fastest first
  std::int64_t too_large = 0, refused = 0, failed = 0;  // of those that were written or simulated
  std::string first_failure;
  std::int64_t ruled_out_by_bound = 0;        // plans that were not simulated, as they cannot be faster
  std::int64_t ruled_out_by_limit = 0;        // the same, as they are slower than most_step_s
  std::optional<SimulatedPlan> least_memory;  // of those that were too large
};

// How far a search is, for people.
struct PlanProgress {
  std::int64_t bounded = 0, plans = 0, simulated = 0;
  double best_s = 0;
  std::string best;
};

// The world with what the limits mean for it. InputError if a limit needs what the scenario does not tell.
SearchedWorld limited(PlanWorld world, const PlanLimits& limits);

// Simulates in children, `jobs` at once, and with other processes that share `results` (null: alone). The
// outcome is the same whoever simulates what. The searches keep pointers to the worlds and the limits:
// neither may be moved or destroyed while a search is used.
void simulate(std::vector<SearchedWorld>& worlds, const PlanLimits& limits, int jobs, SharedResults* results,
              const std::function<void(const PlanProgress&)>& progress);

}  // namespace rehearse
