// Declares the commands of `rehearse`, without the parsing of their arguments.
#pragma once

#include <array>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

inline constexpr std::array<std::string_view, 3> kFormatNames = {"text", "json", "csv"};
enum class Format { text, json, csv };

struct SimulateArguments {
  std::string scenario;                // path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  Format format = Format::text;
  std::string trace;            // file for the timeline; empty: none
  bool strict = false;          // throws RunError if the scenario does not fit into memory
  bool uncertainty = false;     // reports the step time as an interval
  bool advice = true;           // tries changes that could make the step shorter; not for CSV
  bool progress_lines = false;  // writes progress as lines, even if `err` is not a terminal
};
// Simulates a scenario. The progress of a long run, and the notice that it will be long, go to `err`.
void run_simulate(const SimulateArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct CompareArguments {
  std::vector<std::string> scenarios;  // paths; "-": standard input
  std::vector<std::string> variants;   // "key=value key=value": the first scenario with these changes
  std::vector<std::string> overrides;  // applied to all of them
  Format format = Format::text;
  bool strict = false;  // a scenario that does not fit into memory counts as failed
};
// Compares scenarios with the first one. A scenario that cannot be read or fails is reported on `err` and
// left out. Returns the exit status: 2 if one could not be read, otherwise 1 if one failed, otherwise 0.
int run_compare(const CompareArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct KernelArguments {
  std::string kind;           // one of kernel_names()
  std::vector<double> sizes;  // in the order that the kind defines: simulator/commands/kernel_question.hpp
  double batch = 0;           // gemm: number of products of this shape; 0: not given
  std::string pass = "forward", precision = "bf16";  // from kernel_pass_names(), from precision_names()
  std::string attention = "unfused";                 // from attention_names()
  bool causal = false;                               // for attention
  std::string device;                                // name of a preset, or a device file
  bool uncertainty = false;                          // reports the time as an interval
  Format format = Format::text;
};
inline constexpr double kLargestKernelSize = 1e8;
std::vector<std::string> kernel_names(), kernel_pass_names(), precision_names(), attention_names();
// Predicts one kernel's time on a device, what limits it, and what the prediction is based on.
void run_kernel(const KernelArguments& arguments, std::ostream& out);

inline constexpr std::array<std::string_view, 5> kListNames = {"models", "clusters", "devices", "strategies",
                                                               "frameworks"};
std::vector<std::string> strategy_names();  // without those of presets
void run_list(const std::string& what, std::ostream& out);
void run_show(const std::string& name, std::ostream& out);

struct ValidateArguments {
  // Recorded runs (.json, .json.gz), folders of them, names of shipped tables or files of tables; empty: all
  // shipped tables.
  std::vector<std::string> inputs;
  std::vector<std::string> overrides;  // "key=value", for every prediction
  bool uncertainty = false;            // for tables: predictions as intervals
  // Id of a row in the only table, which must contain step times: reports the row's breakdown and each term's
  // effect.
  std::string explain;
  Format format = Format::text;
};
// Compares measurements with their predictions.
void run_validate(const ValidateArguments& arguments, std::ostream& out);

// What nccl-tests measures. send_receive: every rank sends to the next one and receives from the previous
// one.
enum class Exchange { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send_receive };
inline constexpr std::array<std::string_view, 7> kExchangeNames = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "send-receive"};

std::vector<std::string> all_reduce_algorithm_names();  // include "auto"

struct CollectiveArguments {
  std::string kind;                    // one of kExchangeNames
  std::string cluster;                 // name of a preset, or a path
  int nodes = 0, devices = 0;          // 0: follows from the other, or from the cluster's file
  int devices_per_node = 0;            // 0: follows from the other two, or from the cluster's file
  std::vector<std::string> overrides;  // "cluster.key=value"
  std::string bytes = "8..8G*2";       // collective_sizes.hpp
  std::string algorithm = "auto";      // for all-reduces
  bool uncertainty = false;            // reports times as intervals
  Format format = Format::text;
};
// Predicts the table of nccl-tests for a collective that is alone on the cluster.
void run_collective(const CollectiveArguments& arguments, std::ostream& out);

struct ProfileArguments {
  std::string trace;       // trace of PyTorch's profiler: .json or .json.gz
  std::string out;         // file for the scenario; empty: none
  std::string cluster;     // name of a preset, or a file; empty: one that fits the trace's device
  double micro_batch = 0;  // samples; 0: as the trace states
  Format format = Format::text;
};
// Reports what a trace contains about the layers of a step, and makes a scenario from it.
void run_profile(const ProfileArguments& arguments, std::ostream& out);

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
  bool what_if = false, exact = false;  // exact: simulates all micro-batches of every plan
  bool progress_lines = false;          // writes progress as lines, even if `err` is not a terminal
  Format format = Format::text;
};
// Searches for the best plans. Returns the exit status: 1 if no plan satisfies the constraints, otherwise 0.
int run_plan(PlanArguments arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct LaunchArguments {
  std::string scenario;                // path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  std::string framework;               // from launch_framework_names()
  std::string out;                     // output file; empty: standard output
};
std::vector<std::string> launch_framework_names();
// Writes the file that starts a scenario's job in a framework to `out` or to arguments.out, and reports on
// `err` what the framework does differently from the scenario. Throws RunError if the framework cannot run
// the job.
void run_launch(const LaunchArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct ConvertArguments {
  std::string job;                     // path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  std::string out;                     // output file; empty: standard output
};
// Writes a job file of a framework as a scenario file that gives the same prediction, with comments that say
// where each key is from. Throws InputError if it is no job file, or if keys that it leaves open are missing.
void run_convert(const ConvertArguments& arguments, std::istream& in, std::ostream& out);

inline constexpr std::array<std::string_view, 2> kSweepFormatNames = {"csv", "jsonl"};
enum class SweepFormat { csv, jsonl };

struct SweepArguments {
  std::string input;                   // path of a scenario or sweep file; "-": standard input
  std::vector<std::string> vary;       // "key=a,b,c"
  std::vector<std::string> overrides;  // "key=value"
  std::string out;                     // output file; empty: standard output
  std::optional<SweepFormat> format;   // nullopt: by the extension of `out`, otherwise CSV
  int jobs = 0;                        // concurrent simulations; 0: the processors this process may use
  bool force_new = false;              // discards what `out` contains
  bool merge = false;                  // only merges the files of ranks
  bool strict = false;                 // a point that does not fit into memory counts as failed
};
// Simulates every combination of the varied values, several at once, each in a separate process. Points that
// `out` already contains are not computed again. Returns the exit status: 1 if a point has no result,
// otherwise 0. Progress and summary go to `err`.
int run_sweep(const SweepArguments& arguments, std::istream& in, std::ostream& err);

}  // namespace rehearse
