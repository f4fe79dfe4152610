// Reads the plans that `rehearse plan --format json` found.
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

// The value that a plan assigns to a scenario key such as "strategy.tensor".
struct PlanSetting {
  std::string text;              // without quotes
  std::optional<double> number;  // if the value is a number
};

struct FoundPlan {
  // ranked: a result of the search; own: the scenario's own settings; too_large: possibly faster, but does
  // not fit into memory.
  enum class Origin { ranked, own, too_large } origin = Origin::ranked;
  std::map<std::string, PlanSetting> settings;  // by key
  // kNotTold if the file does not give it. For a plan that is too large, the step time is a lower bound.
  double step_time_s = kNotTold, time_per_sample_s = kNotTold, samples_per_s = kNotTold;
  double devices = kNotTold, mfu = kNotTold;                         // MFU: a fraction
  double memory_bytes = kNotTold, memory_capacity_bytes = kNotTold;  // of the fullest device
  double cost_per_step = kNotTold;                                   // in PlanFile::currency
  double energy_wh_per_step = kNotTold;
  double slower = kNotTold;                             // relative to the best plan: 0.01 is 1 %
  std::optional<std::pair<double, double>> interval_s;  // range of the step time
  // indistinguishable: from the best plan, given the uncertainty
  bool fits = true, indistinguishable = false;
  bool simulated = false;  // false: only a bound is known
  bool pareto = false;     // no other plan is better in all objectives
  bool is_base = false;    // the scenario's own plan
  std::string why;         // why it is slower, or what would make it fit
  std::string file;        // path of its scenario, including the folder; empty: none
};

// What to measure to distinguish two plans.
struct PlanDecision {
  std::string sentence;
  std::vector<std::string> measure;  // commands
};

struct PlanFile {
  std::string name;  // file name for messages
  std::string scenario, objective, currency;
  // Ranked plans, best first; then the scenario's own unless it is ranked; then those that are too large.
  std::vector<FoundPlan> plans;
  // Sizes of the search; nullopt: not given.
  std::optional<double> searched, bounded, simulated;
  std::vector<std::pair<std::string, double>> ruled_out;  // number of plans by reason, such as "memory"
  std::vector<PlanDecision> decisions;
  std::vector<std::string> binding;  // what limits the best plan
};

// Parses JSON. Throws InputError with the file, the position, what was found and what is allowed.
// Relative names of scenario files are resolved against `folder`.
PlanFile plans_in(std::string_view text, const std::string& name, const std::string& folder);
PlanFile read_plans(const std::string& path);
// Whether the beginning of the file is that of a plans file. Reads only its first bytes.
bool is_plan_file(const std::string& path);

}  // namespace rehearse::gui
