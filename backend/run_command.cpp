#include "backend/run_command.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "backend/host/host_executor.hpp"
#include "backend/record_keeper.hpp"
#include "backend/recorded_launch.hpp"
#include "models/base/error.hpp"
#ifdef REHEARSE_HAVE_MPI
#include "backend/host/mpi_transport.hpp"
#endif
#ifdef REHEARSE_HAVE_CUDA
#include "backend/cuda/cuda_executor.hpp"
#include "backend/runtime/communicators.hpp"
#endif

namespace rehearse {
namespace {

// In each rank's own process.
Executor choose_executor(const RunArguments& arguments, const Scenario& scenario, const Plan& plan,
                         Transport& transport) {
  if (arguments.device == "cpu") return host_executor(scenario.run.collectives);
#ifdef REHEARSE_HAVE_CUDA
  const bool timed = scenario.run.compute == RealRun::Compute::timed;
  if (arguments.device == "auto" && timed) return host_executor(scenario.run.collectives);
  try {
    refuse_unordered(*plan.schedule, Communication(*plan.schedule));
  } catch (const RunError&) {
    if (arguments.device == "gpu") throw;
    return host_executor(scenario.run.collectives);
  }
  CudaChoice choice = cuda_executor({arguments.oversubscribe, arguments.patience_s, timed}, transport);
  if (choice.refused.empty()) return std::move(choice.executor);
  if (arguments.device == "gpu") throw RunError(choice.refused);
#else
  (void)scenario, (void)plan, (void)transport;
  if (arguments.device == "gpu")
    throw InputError({}, "this rehearse-run was built without CUDA; allowed: --device cpu");
#endif
  return host_executor(scenario.run.collectives);
}

int environment(const char* name, int least) {
  const char* text = std::getenv(name);
  char* end = nullptr;
  const long value = text == nullptr ? -1 : std::strtol(text, &end, 10);
  if (text == nullptr || *end != '\0' || value < least || value > 1'000'000)
    throw InputError({}, fmt::format("the environment variable {} is {}; allowed: a number from {} on", name,
                                     text == nullptr ? "not set" : fmt::format("\"{}\"", text), least));
  return static_cast<int>(value);
}

std::string choose_transport(const std::string& asked) {
  if (asked != "auto") return asked;
#ifdef REHEARSE_HAVE_MPI
  if (started_by_mpi()) return "mpi";
#endif
  return std::getenv("WORLD_SIZE") != nullptr ? "tcp" : "local";
}

}  // namespace

void run_run(const RunArguments& arguments, std::istream& in, std::ostream& out) {
  const Scenario scenario = read_run_scenario(arguments.scenario, arguments.overrides, in);
  const Plan plan = write_schedule(scenario);
  check(*plan.schedule);
  const auto body = [&](Transport& transport, Journal* journal) {
    const Executor executor = choose_executor(arguments, scenario, plan, transport);
    auto run = run_rank(scenario, plan, transport, executor, {arguments.check_replicas, journal});
    if (!run) return;
    write_run_result(arguments.output, scenario, plan, std::move(*run),
                     describe_run(scenario, executor.name, transport.kind(), arguments.command), out);
  };

  const std::string transport = choose_transport(arguments.transport);
  RecordKeeper keeper;
  const auto start_keeper = [&](const char* between) {
    keeper.start(arguments.output, scenario, plan,
                 describe_run(scenario, "host", between, arguments.command));
  };
  if (transport == "mpi") {
#ifdef REHEARSE_HAVE_MPI
    if (first_by_mpi()) start_keeper("MPI");
    const std::unique_ptr<Transport> mpi = join_mpi(arguments.patience_s);
    try {
      body(*mpi, keeper.share(*mpi, scenario, plan));
    } catch (const std::exception& error) {
      // Aborting ends all processes before anything else could be said.
      std::cerr << "rehearse-run: rank " << mpi->rank() << ": " << error.what() << '\n' << std::flush;
      out.flush();
      mpi->abort();
      throw;
    }
#else
    throw InputError({}, "this rehearse-run was built without MPI; allowed: --transport tcp or local");
#endif
  } else if (transport == "tcp") {
    TcpOptions options;
    options.rank = environment("RANK", 0);
    options.ranks = environment("WORLD_SIZE", 1);
    if (const char* address = std::getenv("MASTER_ADDR")) options.first_address = address;
    if (std::getenv("MASTER_PORT") != nullptr) options.first_port = environment("MASTER_PORT", 1);
    options.patience_s = arguments.patience_s;
    if (options.rank == 0) start_keeper("TCP");
    const std::unique_ptr<Transport> tcp = join_tcp(options);
    body(*tcp, keeper.share(*tcp, scenario, plan));
  } else {
    LaunchOptions options;
    options.ranks = plan.schedule->ranks();
    options.patience_s = arguments.patience_s;
    launch_recorded(options, arguments.output, scenario, plan,
                    describe_run(scenario, "host", "TCP", arguments.command), body);
  }
}

}  // namespace rehearse
