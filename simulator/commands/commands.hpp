// The commands of `rehearse`, without the parsing of their arguments.
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
  std::string scenario;                // a path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  Format format = Format::text;
  std::string trace;            // where to write the timeline; empty: nowhere
  bool strict = false;          // RunError where the scenario does not fit into memory
  bool uncertainty = false;     // the step time as an interval
  bool progress_lines = false;  // writes progress as lines, even if `err` is not a terminal
};
// Progress of a long run, and that it will be long, go to `err`.
void run_simulate(const SimulateArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct CompareArguments {
  std::vector<std::string> scenarios;  // paths; "-": standard input
  std::vector<std::string> variants;   // "key=value key=value": the first scenario with these changes
  std::vector<std::string> overrides;  // of all of them
  Format format = Format::text;
  bool strict = false;  // one that does not fit into memory has failed
};
// Scenarios side by side, the first one being the base. One that cannot be read or fails is told on `err` and
// left out. Returns the exit status: 2 if one could not be read, else 1 if one failed, else 0.
int run_compare(const CompareArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct KernelArguments {
  std::string kind;           // one of kernel_names()
  std::vector<double> sizes;  // in the order of that kind: simulator/commands/kernel_question.hpp
  double batch = 0;           // gemm: products of this shape; 0: not given
  std::string pass = "forward", precision = "bf16";  // of kernel_pass_names(), of precision_names()
  std::string attention = "unfused";                 // of attention_names()
  bool causal = false;                               // attention
  std::string device;                                // a preset's name or a device file
  bool uncertainty = false;                          // the time as an interval
  Format format = Format::text;
};
inline constexpr double kLargestKernelSize = 1e8;
std::vector<std::string> kernel_names(), kernel_pass_names(), precision_names(), attention_names();
// One kernel's time on a device, what bounds it and what that rests on.
void run_kernel(const KernelArguments& arguments, std::ostream& out);

inline constexpr std::array<std::string_view, 5> kListNames = {"models", "clusters", "devices", "strategies",
                                                               "frameworks"};
void run_list(const std::string& what, std::ostream& out);
void run_show(const std::string& name, std::ostream& out);

struct ValidateArguments {
  // Recorded runs (.json, .json.gz), folders of them, names of shipped tables or files of tables; none: all
  // shipped tables.
  std::vector<std::string> inputs;
  std::vector<std::string> overrides;  // "key=value", of every prediction
  bool uncertainty = false;            // of tables: predictions as intervals
  // The id of a row of the one table, which is of step times: its breakdown, and each term's effect.
  std::string explain;
  Format format = Format::text;
};
// Measurements, beside each its prediction.
void run_validate(const ValidateArguments& arguments, std::ostream& out);

// What nccl-tests measures. send_receive: every rank sends to the next one and receives from the one before.
enum class Exchange { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, reduce, send_receive };
inline constexpr std::array<std::string_view, 7> kExchangeNames = {
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce", "send-receive"};

std::vector<std::string> all_reduce_algorithm_names();  // "auto" among them

struct CollectiveArguments {
  std::string kind;                // one of kExchangeNames
  std::string cluster;             // a preset's name or a path
  int nodes = 0, devices = 0;      // 0: as many as follow from the other, and from the cluster's file
  std::string bytes = "8..8G*2";   // collective_sizes.hpp
  std::string algorithm = "auto";  // of all-reduces
  bool uncertainty = false;        // times as intervals
  Format format = Format::text;
};
// The table of nccl-tests, predicted for a collective that is alone on the cluster.
void run_collective(const CollectiveArguments& arguments, std::ostream& out);

struct ProfileArguments {
  std::string trace;       // of PyTorch's profiler: .json or .json.gz
  std::string out;         // where to write the scenario; empty: nowhere
  std::string cluster;     // a preset's name or a file; empty: one that fits the trace's device
  double micro_batch = 0;  // samples; 0: as the trace says
  Format format = Format::text;
};
// What a trace says of the layers of a step, and a scenario made of it.
void run_profile(const ProfileArguments& arguments, std::ostream& out);

// What the best plan is best at.
enum class PlanObjective { time, cost, energy };
inline constexpr std::array<std::string_view, 3> kPlanObjectiveNames = {"time", "cost", "energy"};

struct PlanArguments {
  std::string scenario;                // a path; "-": standard input
  std::string text;                    // of the scenario file, once it has been read
  std::vector<std::string> overrides;  // "key=value"
  std::vector<std::string> vary;       // "key=a,b,c": the only values that plans may give the key
  std::vector<std::string> keep;       // keys that plans leave as the scenario has them
  std::vector<std::string> clusters;   // presets or files; empty: the scenario's
  std::string nodes, global_batches;   // "8", "8,16" or "8..512"; empty: the scenario's
  PlanObjective objective = PlanObjective::time;
  std::string reserve;                   // of each device's memory: "4GiB", "5%"; empty: as estimated
  double budget = 0, deadline_days = 0;  // of the whole training; 0: none
  double least_mfu = 0;
  double tolerance = 0.005;  // by which a plan may be slower than the best one that there is
  int top = 10;              // plans in the answer
  std::string out;           // a folder for a scenario file of each plan; empty: none
  std::string results;       // a file of simulated plans, to go on with; empty: none
  bool force_new = false;
  int jobs = 0;                         // simulations at once; 0: processors
  bool what_if = false, exact = false;  // exact: simulates all micro-batches of every plan
  bool progress_lines = false;          // writes progress as lines, even if `err` is not a terminal
  Format format = Format::text;
};
// Returns the exit status: 1 if no plan satisfies the constraints.
int run_plan(const PlanArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

struct LaunchArguments {
  std::string scenario;                // a path; "-": standard input
  std::vector<std::string> overrides;  // "key=value"
  std::string framework;               // of launch_framework_names()
  std::string out;                     // where to write the file; empty: standard output
};
std::vector<std::string> launch_framework_names();
// The file that starts a scenario's job in a framework goes to `out`, or to the file asked for; what the
// framework does otherwise than the scenario says goes to `err`. RunError where it cannot run the job.
void run_launch(const LaunchArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err);

inline constexpr std::array<std::string_view, 2> kSweepFormatNames = {"csv", "jsonl"};
enum class SweepFormat { csv, jsonl };

struct SweepArguments {
  std::string input;                   // a scenario or a sweep file; "-": standard input
  std::vector<std::string> vary;       // "key=a,b,c"
  std::vector<std::string> overrides;  // "key=value"
  std::string out;                     // where to write the lines; empty: standard output
  std::optional<SweepFormat> format;   // by the ending of `out`, else CSV
  int jobs = 0;                        // simulations at once; 0: the processors this process may use
  bool force_new = false;              // throw away what stands in `out`
  bool merge = false;                  // only gather the files of ranks
  bool strict = false;                 // a point that does not fit into memory has failed
};
// Every combination of the varied values, several at once, each in a process of its own; what `out` holds
// already is not computed again. Returns the exit status: 1 if a point has no result. Progress and summary go
// to `err`.
int run_sweep(const SweepArguments& arguments, std::istream& in, std::ostream& err);

}  // namespace rehearse
