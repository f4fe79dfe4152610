// Implements `rehearse plan`: finds the best plans for a model on a cluster, and what they cost.
#pragma once

#include <array>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

// The quantity that the best plan minimizes.
enum class PlanObjective { time, cost, energy };
inline constexpr std::array<std::string_view, 3> kPlanObjectiveNames = {"time", "cost", "energy"};

struct PlanArguments {
  std::string scenario;                // path; "-": standard input
  std::string text;                    // contents of the scenario file, once it has been read
  std::vector<std::string> overrides;  // "key=value"
  std::vector<std::string> vary;       // "key=a,b,c": the only values that plans may give the key
  std::vector<std::string> keep;       // keys that plans leave unchanged
  std::vector<std::string> clusters;   // presets or files; empty: the scenario's cluster
  std::string nodes, global_batches;   // "8", "8,16" or "8..512"; empty: the scenario's
  PlanObjective objective = PlanObjective::time;
  std::string reserve;                   // memory kept free on each device: "4GiB", "5%"; empty: as estimated
  double budget = 0, deadline_days = 0;  // for the entire training run; 0: none
  double least_mfu = 0;
  double tolerance = 0.005;  // fraction by which a plan may be slower than the best possible one
  int top = 10;              // number of plans in the answer
  std::string out;           // folder for a scenario file of each plan; empty: none
  std::string results;       // file of simulated plans, to which a later search adds; empty: none
  bool force_new = false;
  int jobs = 0;                         // concurrent simulations; 0: number of processors
  bool what_if = false, exact = false;  // exact: extrapolates no step
  bool progress_lines = false;          // writes progress as lines, even if `err` is not a terminal
  Format format = Format::text;
};
// Searches for the best plans. Returns the exit status: 1 if no plan satisfies the constraints, otherwise 0.
int run_plan(PlanArguments arguments, std::istream& in, std::ostream& out, std::ostream& err);

RunSubcommand add_plan(CLI::App& options);

}  // namespace rehearse
