// Implements the command line of `rehearse`. Exit status: 0: done; 1: the run failed; 2: the input is wrong.
#include <algorithm>
#include <array>
#include <iostream>

#include "models/text/command_line.hpp"
#include "models/text/completion.hpp"
#include "models/text/heap.hpp"
#include "models/text/program.hpp"
#include "simulator/commands/commands.hpp"

namespace {

using namespace rehearse;

template <std::size_t N>
CLI::Validator one_of(const std::array<std::string_view, N>& names) {
  return rehearse::one_of(std::vector<std::string>(names.begin(), names.end()));
}

Format format_named(const std::string& name) {
  const auto found = std::find(kFormatNames.begin(), kFormatNames.end(), name);
  return static_cast<Format>(found - kFormatNames.begin());
}

int run(int argc, char** argv) {
  CLI::App app{"Rehearse predicts how long a distributed training step takes on a cluster, and why."};
  app.set_version_flag("--version", "rehearse " REHEARSE_VERSION);
  app.require_subcommand(0, 1);  // parse_command_line reports a misspelt one
  std::string format = "text", progress = "auto";

  SimulateArguments simulation;
  bool no_fold = false;
  std::string advice = "auto";
  CLI::App* simulate = app.add_subcommand("simulate", "Predict one step of a scenario");
  simulate->add_option("SCENARIO", simulation.scenario, "A scenario file; - for standard input")->required();
  simulate->add_option("--set", simulation.overrides, "Override a key of the scenario: key=value")
      ->take_all()
      ->allow_extra_args(false);
  simulate->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));
  simulate
      ->add_option("--trace", simulation.trace, "Write the timeline (.json or .json.gz; Perfetto opens it)")
      ->check(file_name());
  simulate->add_flag("--no-fold", no_fold, "Simulate every rank instead of one of each kind");
  simulate->add_flag(
      "--strict", simulation.strict,
      "Refuse a scenario that does not fit into device memory (exit status 1) instead of warning");
  simulate->add_flag("--uncertainty", simulation.uncertainty,
                     "Give the step time as an interval, from the uncertainty of each constant");
  simulate
      ->add_option("--advice", advice,
                   "Try changes that could make the step shorter: auto (in text), always or never")
      ->check(rehearse::one_of(std::vector<std::string>{"auto", "always", "never"}));
  simulate->add_option("--progress", progress, "How to show progress: auto (one line on a terminal) or lines")
      ->check(rehearse::one_of(std::vector<std::string>{"auto", "lines"}));

  CompareArguments comparison;
  CLI::App* compare =
      app.add_subcommand("compare", "Compare scenarios side by side, and say why they differ");
  compare->add_option("SCENARIO", comparison.scenarios, "Scenario files; the first is the base")->required();
  const auto several = [&](const char* option, std::vector<std::string>& values, const char* help) {
    compare->add_option(option, values, help)->take_all()->allow_extra_args(false);
  };
  several("--variant", comparison.variants, "Add the first scenario with changes: \"key=value key=value\"");
  several("--set", comparison.overrides, "Override a key of all scenarios: key=value");
  compare->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));
  compare->add_flag(
      "--strict", comparison.strict,
      "Leave out scenarios that do not fit into device memory (exit status 1) instead of warning");

  std::string what;
  CLI::App* list = app.add_subcommand("list", "List the shipped presets");
  list->add_option("WHAT", what, "models, clusters, devices, strategies or frameworks")
      ->required()
      ->check(one_of(kListNames));

  std::string name;
  CLI::App* show = app.add_subcommand("show", "Show a preset or a file, and the figures that follow from it");
  show->add_option("NAME", name,
                   "The name of a model, cluster, device or strategy, or a file that describes a model, "
                   "cluster, device or scenario")
      ->required()
      ->check(shipped_or_file(
          {"models", "topologies", "topologies/devices", "simulator/strategies", "simulator/frameworks"},
          strategy_names()));

  ValidateArguments validation;
  CLI::App* validate = app.add_subcommand("validate", "Predict measured runs and show the errors");
  validate
      ->add_option("INPUT", validation.inputs,
                   "Recorded runs, folders of them, or tables (shipped names or files); default: all "
                   "shipped tables")
      ->check(shipped_or_file({"benchmarks/measurements"}));
  validate->add_option("--set", validation.overrides, "Override a key of every prediction: key=value")
      ->take_all()
      ->allow_extra_args(false);
  validate->add_flag("--uncertainty", validation.uncertainty,
                     "Give predictions as intervals, and how many measurements are inside");
  validate->add_option("--explain", validation.explain,
                       "Explain one row of a table: its breakdown, and the step time without each term");
  validate->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));

  CollectiveArguments collective;
  CLI::App* collectives = app.add_subcommand("collective", "Predict a collective, as nccl-tests measures it");
  collectives->add_option("KIND", collective.kind, "all-reduce, all-gather, reduce-scatter, all-to-all, ...")
      ->required()
      ->check(one_of(kExchangeNames));
  collectives
      ->add_option("--cluster", collective.cluster, "The name of a cluster, or a file that describes one")
      ->required()
      ->check(shipped_or_file({"topologies"}));
  collectives->add_option("--nodes", collective.nodes, "Nodes (default: those that --devices fill, or 1)")
      ->check(CLI::Range(1, 1'000'000));
  collectives
      ->add_option("--devices", collective.devices,
                   "Use only so many devices: evenly over --nodes, else the first ones (default: all)")
      ->check(CLI::Range(2, 1'000'000));
  collectives
      ->add_option("--devices-per-node", collective.devices_per_node,
                   "Use only so many devices of each node (default: all)")
      ->check(CLI::Range(1, 4096));
  collectives->add_option("--set", collective.overrides, "Override a key of the cluster: cluster.key=value")
      ->take_all()
      ->allow_extra_args(false);
  collectives->add_option("--bytes", collective.bytes,
                          "Sizes: 8, 64K, 1M, 8G, 8..8G*2, 1M..16M+1M (default: 8..8G*2)");
  collectives
      ->add_option("--algorithm", collective.algorithm,
                   "Algorithm of an all-reduce: ring, tree, ... (default: auto)")
      ->check(rehearse::one_of(all_reduce_algorithm_names()));
  collectives->add_flag("--uncertainty", collective.uncertainty,
                        "Give times as intervals, from the uncertainty of each constant of the links");
  collectives->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));

  SweepArguments sweep;
  std::string sweep_format;
  CLI::App* sweeping = app.add_subcommand("sweep", "Predict every combination of varied keys");
  sweeping->add_option("INPUT", sweep.input, "A scenario or a sweep file; - for standard input")->required();
  sweeping->add_option("--vary", sweep.vary, "Vary a key: key=1,2,4 or key=1..8, 0..64+16, 1..64*2")
      ->take_all()
      ->allow_extra_args(false);
  sweeping->add_option("--set", sweep.overrides, "Override a key at every point: key=value")
      ->take_all()
      ->allow_extra_args(false);
  sweeping
      ->add_option("--out", sweep.out, "Append results to FILE, and compute only the points that it lacks")
      ->check(file_name());
  sweeping->add_option("--format", sweep_format, "csv or jsonl")->check(one_of(kSweepFormatNames));
  sweeping->add_option("--jobs", sweep.jobs, "Simulations at once (default: all processors)")
      ->check(CLI::Range(1, 4096));
  sweeping->add_flag("--force-new", sweep.force_new, "Start over, and discard what FILE contains");
  sweeping->add_flag("--strict", sweep.strict,
                     "Count points that do not fit into device memory as failed (exit status 1)");
  sweeping->add_flag("--merge", sweep.merge,
                     "Compute nothing; gather the ranks' FILE.0, FILE.1, ... into FILE");

  KernelArguments kernel;
  CLI::App* one_kernel =
      app.add_subcommand("kernel", "Predict one kernel's time on a device, and what bounds it");
  one_kernel->add_option("KIND", kernel.kind, "gemm, attention, convolution or norm")
      ->required()
      ->check(rehearse::one_of(kernel_names()));
  one_kernel
      ->add_option("SIZE", kernel.sizes,
                   "gemm: M N K; attention: BATCH HEADS SEQUENCE HEAD_DIM; convolution: W H C N K S R [PAD_W "
                   "PAD_H [STRIDE_W STRIDE_H]]; norm: ROWS WIDTH")
      ->required();
  one_kernel->add_option("--device", kernel.device, "The name of a device, or a device file")
      ->required()
      ->check(shipped_or_file({"topologies/devices"}));
  one_kernel->add_option("--precision", kernel.precision, "Precision of training (default: bf16)")
      ->check(rehearse::one_of(precision_names()));
  one_kernel->add_option("--batch", kernel.batch, "gemm: number of products in the batch")
      ->check(CLI::Range(1.0, kLargestKernelSize));
  one_kernel->add_option("--pass", kernel.pass, "forward, backward, backward-input or backward-weight")
      ->check(rehearse::one_of(kernel_pass_names()));
  one_kernel
      ->add_option("--attention", kernel.attention,
                   "attention: unfused, or fused by flash-1, flash-2 or flash-3")
      ->check(rehearse::one_of(attention_names()));
  one_kernel->add_flag("--causal", kernel.causal, "attention: queries see no later keys");
  one_kernel->add_flag("--uncertainty", kernel.uncertainty,
                       "Give the time as an interval, from the uncertainty of each constant of the device");
  one_kernel->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));

  ProfileArguments profile;
  CLI::App* profiling = app.add_subcommand("profile", "Make a scenario from a trace of PyTorch's profiler");
  profiling
      ->add_option("TRACE", profile.trace,
                   "The file that prof.export_chrome_trace() wrote (.json or .json.gz)")
      ->required();
  profiling->add_option("--out", profile.out, "Write the scenario (.toml)")->check(file_name());
  profiling
      ->add_option("--cluster", profile.cluster,
                   "The name of a cluster, or a file that describes one (default: by the device)")
      ->check(shipped_or_file({"topologies"}));
  profiling
      ->add_option("--micro-batch", profile.micro_batch,
                   "Samples in a forward pass (default: from the shapes in the trace)")
      ->check(CLI::Range(1, 1'000'000));
  profiling->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));

  PlanArguments plan;
  std::string objective = "time";
  CLI::App* planning =
      app.add_subcommand("plan", "Find the best plan for a model on a cluster, and what it costs");
  const auto listed = [&](const char* option, std::vector<std::string>& values, const char* help) {
    planning->add_option(option, values, help)->take_all()->allow_extra_args(false);
  };
  planning
      ->add_option("SCENARIO", plan.scenario,
                   "A scenario file, whose degrees and other keys of plans are ignored; - for standard input")
      ->required();
  listed("--set", plan.overrides, "Override a key of the scenario: key=value");
  listed("--vary", plan.vary, "Restrict the values that plans choose from: key=a,b,c");
  listed("--keep", plan.keep, "Keep the scenario's value of a key in all plans");
  planning
      ->add_option("--cluster", plan.clusters,
                   "Clusters to choose from: presets or files, separated by commas")
      ->delimiter(',')
      ->check(shipped_or_file({"topologies"}));
  planning->add_option("--nodes", plan.nodes, "Numbers of nodes to choose from: 8, 8,12 or 8..512")
      ->check(not_empty("8, 8,12 or 8..512"));
  planning
      ->add_option("--global-batch", plan.global_batches,
                   "Global batches to choose from: 512, 512,1024 or 512..2048")
      ->check(not_empty("512, 512,1024 or 512..2048"));
  planning->add_option("--objective", objective, "What to minimize, per sample: time, cost or energy")
      ->check(one_of(kPlanObjectiveNames));
  planning
      ->add_option(
          "--reserve", plan.reserve,
          "Memory that stays free on each device: 4GiB or 5% (default: as CUDA, NCCL and cuBLAS need)")
      ->check(not_empty("such as 4GiB, or a share below 100%"));
  planning->add_option("--budget", plan.budget, "Largest cost of the entire training")
      ->check(CLI::PositiveNumber);
  planning->add_option("--deadline", plan.deadline_days, "Longest duration of the entire training, in days")
      ->check(CLI::PositiveNumber);
  planning->add_option("--least-mfu", plan.least_mfu, "Smallest model FLOPs utilization, such as 0.4")
      ->check(CLI::Range(0.0, 1.0));
  planning
      ->add_option("--tolerance", plan.tolerance,
                   "Share by which the answer may be slower than the best plan (default: 0.005)")
      ->check(CLI::Range(0.0, 0.5));
  planning
      ->add_option("--top", plan.top, "Number of plans in the answer (default: 10; 1 searches no runners-up)")
      ->check(CLI::Range(1, 1000));
  planning
      ->add_option("--out", plan.out,
                   "Write a scenario file for each plan, and the launch files, to this folder")
      ->check(folder_name());
  planning
      ->add_option("--results", plan.results,
                   "Store simulated plans in FILE, continue from those in it, and share it with other ranks")
      ->check(file_name());
  planning->add_flag("--force-new", plan.force_new, "Start over, and discard what FILE contains");
  planning->add_option("--jobs", plan.jobs, "Simulations at once (default: all processors)")
      ->check(CLI::Range(1, 4096));
  planning->add_flag("--what-if", plan.what_if,
                     "Add the best plans with a faster network, with more memory, and with a slow node");
  planning->add_flag("--exact", plan.exact, "Simulate all micro-batches of every plan");
  planning->add_option("--progress", progress, "How to show progress: auto (one line on a terminal) or lines")
      ->check(rehearse::one_of(std::vector<std::string>{"auto", "lines"}));
  planning->add_option("--format", format, "text, json or csv")->check(one_of(kFormatNames));

  LaunchArguments launch;
  CLI::App* launching =
      app.add_subcommand("launch", "Write the file that starts the real job in a framework");
  launching->add_option("SCENARIO", launch.scenario, "A scenario file; - for standard input")->required();
  launching->add_option("--set", launch.overrides, "Override a key of the scenario: key=value")
      ->take_all()
      ->allow_extra_args(false);
  launching->add_option("--for", launch.framework, "megatron, deepspeed or torchtitan")
      ->required()
      ->check(rehearse::one_of(launch_framework_names()));
  launching->add_option("--out", launch.out, "Write to FILE instead of standard output")->check(file_name());

  ConvertArguments convert;
  CLI::App* converting =
      app.add_subcommand("convert", "Write a scenario from the file that starts a job in a framework");
  converting
      ->add_option(
          "FILE", convert.job,
          "A script or command line of Megatron-LM, or a configuration of DeepSpeed, torchtitan, Hugging "
          "Face's Trainer, accelerate or axolotl; - for standard input")
      ->required();
  converting->add_option("--set", convert.overrides, "Set or override a key of the scenario: key=value")
      ->take_all()
      ->allow_extra_args(false);
  converting->add_option("--out", convert.out, "Write to FILE instead of standard output")
      ->check(file_name());

  std::string shell;
  CLI::App* completing =
      app.add_subcommand("completion", "Print the script that completes these command lines in a shell");
  completing->add_option("SHELL", shell, "bash, zsh or fish; in bash: source <(rehearse completion bash)")
      ->required()
      ->check(one_of(kShellNames));

  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  if (no_fold) simulation.overrides.emplace_back("simulation.fold=false");
  simulation.format = format_named(format);
  simulation.progress_lines = progress == "lines";
  simulation.advice = advice == "always" || (advice == "auto" && simulation.format == Format::text);
  if (*simulate) run_simulate(simulation, std::cin, std::cout, std::cerr);
  if (*compare) {
    comparison.format = format_named(format);
    return run_compare(comparison, std::cin, std::cout, std::cerr);
  }
  if (*one_kernel) {
    kernel.format = format_named(format);
    run_kernel(kernel, std::cout);
  }
  if (*profiling) {
    profile.format = format_named(format);
    run_profile(profile, std::cout);
  }
  if (*planning) {
    plan.format = format_named(format);
    plan.objective = static_cast<PlanObjective>(
        std::find(kPlanObjectiveNames.begin(), kPlanObjectiveNames.end(), objective) -
        kPlanObjectiveNames.begin());
    plan.progress_lines = progress == "lines";
    return run_plan(plan, std::cin, std::cout, std::cerr);
  }

  if (*launching) run_launch(launch, std::cin, std::cout, std::cerr);
  if (*converting) run_convert(convert, std::cin, std::cout);
  if (*completing) std::cout << completion_script(command_table(app), shell);
  if (*list) run_list(what, std::cout);
  if (*show) run_show(name, std::cout);
  if (*sweeping) {
    if (!sweep_format.empty()) sweep.format = sweep_format == "csv" ? SweepFormat::csv : SweepFormat::jsonl;
    return run_sweep(sweep, std::cin, std::cerr);
  }
  if (*collectives) {
    collective.format = format_named(format);
    run_collective(collective, std::cout);
  }
  if (*validate) {
    validation.format = format_named(format);
    run_validate(validation, std::cout);
  }
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  use_huge_pages_for_heap();
  return run_program("rehearse", [&] { return run(argc, argv); });
}
