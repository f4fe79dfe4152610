// Builds the answer to a search for plans: the best ones, what they cost, and why others are not among them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/commands/plan/plan_runs.hpp"
#include "simulator/commands/plan/plan_uncertainty.hpp"

namespace rehearse {

// Where a plan's step time comes from: an exact simulation, an extrapolation from a simulation of a few
// micro-batches, or a lower bound.
enum class PlanBasis { simulated, extended, bounded };
inline constexpr std::array<std::string_view, 3> kPlanBasisNames = {"simulated", "extended", "bounded"};

struct AnsweredPlan {
  std::size_t world = 0;
  PlanChoice plan;
  std::string words;
  std::vector<std::pair<std::string, std::string>> settings;  // of the scenario file
  PlanBasis basis = PlanBasis::simulated;
  PlanFigures figures;
  int devices = 0;
  std::optional<std::pair<double, double>> interval_s;  // contains nine of ten measurements
  double capacity_bytes = 0;
  bool fits = true;
  double samples = 0;  // per step
  double slower = 0;   // relative to the best plan, by the objective: 0.02 is 2 %
  std::string why;     // where it loses time compared with the best plan
  StepCost cost;
  std::optional<TrainingCost> training;  // if the scenario states how long it is
  std::vector<std::string> ignored;      // keys of the scenario that do not apply to this plan
  std::string file;                      // the plan's scenario file
};

struct NearPlan {
  CoreChoice core;
  std::string words;
  std::vector<std::pair<std::string, std::string>> settings;
  double least_step_s = 0, least_bytes = 0, capacity_bytes = 0;
  std::vector<std::string> sets;  // "key=value": changes that make it fit; empty: none found
  double fitting_step_s = 0;      // step time with these changes
};

struct ChangedWorld {
  std::string name;
  std::optional<AnsweredPlan> best;
  bool same_plan = false;
};

// Two plans of `PlanAnswer::plans` for which it is uncertain which is faster.
struct OpenDecision {
  std::size_t first = 0, second = 0;
  PlanDecision decision;
};

// The file that starts the best plan's job in a framework.
struct PlanLaunch {
  std::string framework, file;      // file: in the folder of the answer
  std::vector<std::string> cannot;  // what the framework does differently from the plan
};

struct PlanAnswer {
  std::string scenario, model, objective, sample_unit;
  std::string framework;  // whose costs all plans count; empty: none
  std::string devices;    // plural noun: "GPUs"
  std::vector<std::string> worlds;
  std::vector<AnsweredPlan> plans;  // best first
  std::vector<std::size_t> pareto;  // of `plans`: no other is at least as good in time, memory and cost
  std::optional<AnsweredPlan> own;  // the scenario's own plan
  std::vector<NearPlan> near;
  std::vector<OpenDecision> open;
  std::vector<ChangedWorld> changed;
  std::vector<PlanLaunch> launches;
  double tolerance = 0;
  std::int64_t space = 0, impossible = 0, too_large = 0, slower = 0, beyond_limits = 0, bounded = 0,
               simulated = 0, failed = 0;
  std::string first_failure;
  std::vector<std::string> binding;  // what would have to change; only if no plan is possible
  std::string currency;
};

PlanAnswer plan_answer(const PlanArguments& arguments, std::vector<SearchedWorld>& worlds,
                       const PlanLimits& limits, int jobs, SharedResults* results);

// Returns a sentence such as "Plans 1 and 2 cannot be told apart: ...".
std::string decision_sentence(const OpenDecision& open);
void write_plan_text(const PlanAnswer& answer, std::ostream& out);
void write_plan_json(const PlanAnswer& answer, std::ostream& out);
void write_plan_csv(const PlanAnswer& answer, std::ostream& out);

}  // namespace rehearse
