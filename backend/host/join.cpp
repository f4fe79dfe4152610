#include "backend/host/join.hpp"

#include <fmt/format.h>

#include <iostream>

#include "backend/host/launch.hpp"
#include "backend/host/started.hpp"
#include "backend/runs/agreement.hpp"
#include "models/text/error.hpp"
#ifdef REHEARSE_HAVE_MPI
#include "backend/host/mpi_transport.hpp"
#endif

namespace rehearse {
namespace {

#ifdef REHEARSE_HAVE_MPI
constexpr bool kWithMpi = true;

void with_mpi(const JoinOptions& options, const std::function<void(Transport&)>& body) {
  const std::unique_ptr<Transport> mpi = join_mpi(options.patience_s);
  try {
    body(*mpi);
  } catch (const DifferentScenarios&) {
    throw;  // on every rank
  } catch (const std::exception& error) {
    // Reports the error first, because aborting ends all processes; in one write, or the lines of ranks would
    // mix.
    std::cerr << fmt::format("rehearse-run: rank {}: {}\n", mpi->rank(), error.what()) << std::flush;
    std::cout.flush();
    mpi->abort();
    throw;
  }
}
#else
constexpr bool kWithMpi = false;

void with_mpi(const JoinOptions&, const std::function<void(Transport&)>&) {}
#endif

}  // namespace

std::string choose_transport(const JoinOptions& options) {
  std::string transport = options.transport;
  if (transport == "auto") {
    const Starter starter = starter_of_process(kWithMpi);
    transport = starter == Starter::mpi ? "mpi" : starter == Starter::variables ? "tcp" : "local";
  }
  if (transport == "mpi" && !kWithMpi)
    throw InputError({}, "this rehearse-run was built without MPI; allowed: --transport tcp or local");
  return transport;
}

bool will_be_first(const std::string& transport) {
  return transport == "mpi" ? is_first_of_mpi() : ranks_of_environment().rank == 0;
}

void with_ranks(const JoinOptions& options, const std::function<void(Transport&)>& body) {
  const std::string transport = choose_transport(options);
  if (transport == "mpi") return with_mpi(options, body);
  if (transport == "tcp") {
    TcpOptions tcp = ranks_of_environment();
    tcp.patience_s = options.patience_s;
    return body(*join_tcp(tcp));
  }
  LaunchOptions local;
  local.ranks = options.ranks;
  local.patience_s = options.patience_s;
  launch(local, body);
}

}  // namespace rehearse
