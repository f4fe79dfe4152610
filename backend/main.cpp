// Implements the command line of `rehearse-run`. Exit status: 0 success; 1 the run failed; 2 the input is
// wrong.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "backend/calibrate/host_calibrate.hpp"
#include "backend/commands/emulate_command.hpp"
#include "backend/commands/run_command.hpp"
#include "backend/commands/verify_command.hpp"
#include "backend/gpu/gpu_module.hpp"
#include "backend/runtime/nccl_choices.hpp"
#include "models/text/error.hpp"
#include "models/text/printable.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"
#include "simulator/strategies/strategy.hpp"
#include "simulator/terminal/command_line.hpp"
#include "simulator/terminal/program.hpp"

namespace {

using namespace rehearse;

// What NCCL is forced to use, and whether its ranks may share GPUs.
struct NcclArguments {
  std::vector<std::string> algorithms = {"auto"}, protocols = {"auto"};
  bool oversubscribe = false;

  bool given() const {
    const std::vector<std::string> none = {"auto"};
    return oversubscribe || algorithms != none || protocols != none;
  }
};

// Returns the combinations that NCCL supports; throws InputError if there are none.
std::vector<LinkWay> nccl_ways(const NcclArguments& arguments) {
  std::vector<LinkWay> ways;
  const auto forced = [](const std::string& name) { return name == "auto" ? "" : name; };
  for (const std::string& algorithm : arguments.algorithms)
    for (const std::string& protocol : arguments.protocols) {
      const NcclLinkOptions options{forced(algorithm), forced(protocol), arguments.oversubscribe};
      if (has_protocol(options.algorithm, options.protocol))
        ways.push_back({options.algorithm, options.protocol,
                        [options](Transport& transport) { return gpu_links(options, transport); }});
    }
  if (ways.empty())
    throw InputError({"--nccl-protocols"},
                     "names no protocol of these algorithms; allowed with them: Simple");
  return ways;
}

// Throws RunError if the folder is missing and cannot be made.
void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw RunError(fmt::format("{}: cannot be made: {}", printable(folder), error.message()));
}

void calibrate_gpu(HostCalibrateArguments& measured, const NcclArguments& nccl) {
  if (!built_for_gpus())
    throw InputError({}, "this rehearse-run was built without CUDA; allowed: --device cpu");
  measured.device = first_gpu;
  if (measured.links) measured.ways = nccl_ways(nccl);
}

// Adds the options of all commands that train a scenario.
void add_scenario(CLI::App& command, ScenarioArguments& arguments) {
  command.add_option("SCENARIO", arguments.scenario, "A scenario file; - for standard input")->required();
  command.add_option("--set", arguments.overrides, "Override a key of the scenario: key=value")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--format", arguments.output.format, "text or json")->check(one_of({"text", "json"}));
  command
      .add_option("--patience", arguments.patience_s, "Seconds without progress after which a rank gives up")
      ->check(CLI::Range(0.1, 86400.0));
}

// Adds the options of all commands that run a scenario and measure it.
void add_common(CLI::App& command, ScenarioArguments& arguments) {
  add_scenario(command, arguments);
  command
      .add_option("--trace", arguments.output.trace,
                  "Write the record of the run (.json or .json.gz), for `rehearse validate` and Perfetto")
      ->check(file_name());
  command
      .add_option(
          "--checkpoints", arguments.checkpoints,
          "Write checkpoints to this folder, as [checkpoint] says, and continue from the newest one in it")
      ->check(file_name());
  command.add_option("--keep", arguments.kept_checkpoints, "Complete checkpoints that are kept (2)")
      ->check(CLI::Range(1, 1000));
  command.add_flag("--check-replicas", arguments.check_replicas,
                   "Check that ranks with the same layers have bit-identical gradients and weights");
}

int run(int argc, char** argv) {
  CLI::App app{"Runs Rehearse's schedules on real machines and measures what `rehearse` predicts."};
  app.set_version_flag("--version", "rehearse-run " REHEARSE_VERSION);
  app.require_subcommand(0, 1);

  RunArguments real;
  CLI::App* run = app.add_subcommand("run", "Run a scenario with real ranks and measure it");
  add_common(*run, real);
  run->add_option("--transport", real.transport, "auto, mpi, tcp or local")
      ->check(one_of({"auto", "mpi", "tcp", "local"}));
  run->add_option("--device", real.device, "cpu (the default), gpu, or auto: GPUs if each rank has one")
      ->check(one_of({"auto", "cpu", "gpu"}));
  std::string collectives;
  run->add_option(
         "--collectives", collectives,
         "How collectives run: schedule (messages of its algorithms), library (MPI's or NCCL's), or auto")
      ->check(one_of({"auto", "schedule", "library"}));
  run->add_flag("--oversubscribe", real.oversubscribe,
                "Start ranks even if this machine has too few cores or too little memory for them, and allow "
                "several on one GPU (to check arithmetic and order, not speed)");
  run->add_flag("--kernels", real.kernels,
                "Record the kernels that GPUs run under their ops as well, by CUPTI (with --trace)");
  run->add_flag("--nccl-choices", real.nccl_choices,
                "Record which algorithm, protocol and channels NCCL chose for each collective");

  ScenarioArguments emulation;
  CLI::App* emulate = app.add_subcommand(
      "emulate", "Like run, over the scenario's network, emulated with namespaces on this machine (Linux)");
  add_common(*emulate, emulation);
  emulate->add_flag("--oversubscribe", emulation.oversubscribe,
                    "Start ranks even if this machine has too few cores or too little memory for them");

  VerifyArguments verified;
  CLI::App* verify = app.add_subcommand(
      "verify", "Train a scenario on its ranks, and again on one, and compare the losses step by step");
  add_scenario(*verify, verified);
  verify
      ->add_option("--tolerance", verified.tolerance,
                   "Largest relative difference of a step's losses that passes (1e-4)")
      ->check(CLI::Range(1e-12, 1.0));
  verify->add_flag("--oversubscribe", verified.oversubscribe,
                   "Start ranks even if this machine has too few cores or too little memory for them");

  HostCalibrateArguments measured;
  CLI::App* calibrate =
      app.add_subcommand("calibrate", "Measure this machine's compute and links into profiles for rehearse");
  calibrate
      ->add_option("--out", measured.common.folder,
                   "Folder for NAME-device.toml and NAME-links.toml, made if it is missing (.)")
      ->check(folder_name());
  calibrate->add_option("--name", measured.common.name, "NAME (the host's)");
  calibrate
      ->add_option("--base", measured.common.base_device,
                   "Take peaks, bandwidth and memory from this preset or device file")
      ->check(shipped_or_file({"topologies/devices"}));
  calibrate->add_option("--ranks", measured.ranks, "Number of ranks between which links are measured (2)")
      ->check(CLI::Range(1, 1024));
  std::string ranks_are;
  calibrate
      ->add_option("--ranks-are", ranks_are,
                   "Count ranks as nodes (separate containers or namespaces) or as devices of one node, "
                   "instead of by the names of their machines")
      ->check(one_of({"nodes", "devices"}));
  calibrate
      ->add_option("--link-gbps", measured.common.link_gbps,
                   "Nominal rate of the links: write shares of it instead of bandwidths")
      ->check(CLI::Range(1e-6, 1e6));
  calibrate->add_option("--seconds", measured.common.most_s, "Time limit of all measurements together (150)")
      ->check(CLI::Range(1.0, 86400.0));
  std::string calibrated = "cpu";
  calibrate
      ->add_option("--device", calibrated,
                   "cpu (the default), or gpu: the first visible GPU, and links between GPUs by NCCL")
      ->check(one_of({"cpu", "gpu"}));
  NcclArguments nccl;
  std::vector<std::string> algorithm_names = {"auto"}, protocol_names = {"auto"};
  for (const NcclAlgorithm& algorithm : kNcclAlgorithms) algorithm_names.emplace_back(algorithm.name);
  for (const std::string_view protocol : kNcclProtocols) protocol_names.emplace_back(protocol);
  calibrate
      ->add_option("--nccl-algorithms", nccl.algorithms,
                   "Ring,Tree,...: force each in turn, a profile for each (auto: NCCL chooses)")
      ->delimiter(',')
      ->check(one_of(algorithm_names));
  calibrate->add_option("--nccl-protocols", nccl.protocols, "LL,LL128,Simple: likewise, with each algorithm")
      ->delimiter(',')
      ->check(one_of(protocol_names));
  calibrate->add_flag("--oversubscribe", nccl.oversubscribe,
                      "Allow several ranks on one GPU (to try it out, not for speed)");
  calibrate
      ->add_option("--table", measured.common.table,
                   "Write the time of each size of each message and collective as CSV")
      ->check(file_name());
  std::vector<std::string> trained;
  calibrate
      ->add_option(
          "--for", trained,
          "Measure the kernels of this scenario, too (repeatable), so that its times rest on its own sizes")
      ->check(CLI::ExistingFile)
      ->allow_extra_args(false)
      ->take_all();
  ScenarioArguments ground;
  auto* ground_option = calibrate->add_option(
      "--emulate", ground.scenario,
      "Measure the links of this scenario's cluster instead, emulated with namespaces (Linux)");
  calibrate->add_option("--set", ground.overrides, "Override a key of that scenario: key=value")
      ->take_all()
      ->allow_extra_args(false)
      ->needs(ground_option);
  bool only_compute = false, only_links = false;
  auto* compute_flag =
      calibrate->add_flag("--only-compute", only_compute, "Do not measure links")->excludes(ground_option);
  calibrate->add_flag("--only-links", only_links, "Do not measure compute")->excludes(compute_flag);

  if (const std::optional<int> status = parse_command_line(app, argc, argv)) return *status;
  std::string called = "rehearse-run";
  for (int i = 1; i < argc; ++i) called += std::string(" ") + argv[i];
  real.command = emulation.command = measured.common.command = called;
  if (!collectives.empty()) real.overrides.push_back(fmt::format("run.collectives=\"{}\"", collectives));
  if (*run) run_run(real, std::cin, std::cout);
  if (*emulate) run_emulate(emulation, std::cin, std::cout);
  if (*verify) run_verify(verified, std::cin, std::cout);
  measured.compute = !only_links && ground.scenario.empty();
  measured.links = !only_compute;
  if (!ranks_are.empty()) measured.ranks_are = ranks_are == "nodes" ? RanksAre::nodes : RanksAre::devices;
  if (calibrated == "gpu" && ground.scenario.empty())
    calibrate_gpu(measured, nccl);
  else if (nccl.given())
    throw InputError({},
                     "--nccl-algorithms, --nccl-protocols and --oversubscribe apply to GPUs only; allowed "
                     "with --device gpu");
  for (const std::string& scenario : trained)
    for (TrainedKernel& kernel :
         trained_kernels(*write_schedule(read_command_scenario(scenario, {}, std::cin)).schedule))
      measured.common.trained.push_back(std::move(kernel));
  if (*calibrate) make_folder(measured.common.folder);
  if (*calibrate && !ground.scenario.empty()) measured.ground = emulated_links(ground, std::cin);
  if (*calibrate) return run_host_calibrate(measured, std::cout);
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program("rehearse-run", [&] { return run(argc, argv); });
}
