// The plans that `rehearse plan --format json` found, as the file tells them.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rehearse::gui {

inline constexpr double kNotTold = std::numeric_limits<double>::quiet_NaN();

// The value that a plan gives to a scenario key such as "strategy.tensor".
struct PlanSetting {
  std::string text;              // without quotes
  std::optional<double> number;  // of a value that is one
};

struct FoundPlan {
  // ranked: a result of the search; own: what the scenario itself says; too_large: would be faster, but does
  // not fit into memory.
  enum class Origin { ranked, own, too_large } origin = Origin::ranked;
  std::map<std::string, PlanSetting> settings;  // by key
  // kNotTold where the file does not tell it. Of a plan that is too large, the step time is a lower bound.
  double step_time_s = kNotTold, time_per_sample_s = kNotTold, samples_per_s = kNotTold;
  double devices = kNotTold, mfu = kNotTold;                         // MFU: a share
  double memory_bytes = kNotTold, memory_capacity_bytes = kNotTold;  // of the fullest device
  double cost_per_step = kNotTold;                                   // in PlanFile::currency
  double energy_wh_per_step = kNotTold;
  double slower = kNotTold;                             // than the best plan: 0.01 is 1 %
  std::optional<std::pair<double, double>> interval_s;  // of the step time
  bool fits = true, indistinguishable = false;          // indistinguishable: from the best plan
  bool simulated = false;                               // false: known by a bound
  bool pareto = false;                                  // no other plan is better in all that is sought
  bool is_base = false;                                 // the scenario's own plan
  std::string why;                                      // it is slower, or what would make it fit
  std::string file;                                     // its scenario, with its folder; empty: none
};

// What would tell two plans apart.
struct PlanDecision {
  std::string sentence;
  std::vector<std::string> measure;  // commands
};

struct PlanFile {
  std::string name;  // of the file, for messages
  std::string scenario, objective, currency;
  std::vector<FoundPlan>
      plans;  // ranked ones, best first; the scenario's own unless it is ranked; those too large
  // Of the search; nothing: not told.
  std::optional<double> searched, bounded, simulated;
  std::vector<std::pair<std::string, double>> ruled_out;  // "memory", how many
  std::vector<PlanDecision> decisions;
  std::vector<std::string> binding;  // what holds the best plan back
};

// InputError names the file, the place in it, what was found and what is allowed. Names of scenario files
// begin in `folder`.
PlanFile plans_in(std::string_view json, const std::string& name, const std::string& folder);
PlanFile read_plans(const std::string& path);
// Whether the file begins as one of plans does, however long it is.
bool is_plan_file(const std::string& path);

}  // namespace rehearse::gui
