#include "backend/calibrate/host_calibrate.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "backend/calibrate/link_ranks.hpp"
#include "backend/host/host_arithmetic.hpp"
#include "backend/host/launch.hpp"
#ifdef REHEARSE_HAVE_MPI
#include "backend/host/mpi_transport.hpp"
#endif

namespace rehearse {
namespace {

void calibrate_links(Transport& transport, CalibrateArguments arguments, const std::string& where,
                     std::ostream& out, std::ostream& err) {
  LinkRanks ranks(transport);
  if (transport.rank() != 0) return ranks.follow();
  arguments.links = ranks.trials();
  arguments.links_title = fmt::format("{}, {} ranks {}", transport.kind(), transport.ranks(), where);
  run_calibrate(arguments, out, err);
  ranks.end();
}

void calibrate_compute(const HostCalibrateArguments& choice, CalibrateArguments arguments, std::ostream& out,
                       std::ostream& err) {
  const std::unique_ptr<Arithmetic> device =
      choice.device ? choice.device() : std::make_unique<HostArithmetic>();
  arguments.arithmetic = device.get();
  run_calibrate(arguments, out, err);
}

}  // namespace

int run_host_calibrate(const HostCalibrateArguments& arguments, std::ostream& out, std::ostream& err) {
  CalibrateArguments compute = arguments.common, links = arguments.common;
  if (arguments.compute && arguments.links) {
    compute.most_s *= 0.6;
    links.most_s *= 0.4;
  }
#ifdef REHEARSE_HAVE_MPI
  if (started_by_mpi()) {
    // The others wait while rank 0 computes.
    const std::unique_ptr<Transport> mpi = join_mpi(arguments.patience_s + arguments.common.most_s);
    try {
      if (arguments.compute && mpi->rank() == 0) calibrate_compute(arguments, compute, out, err);
      if (arguments.links && mpi->ranks() > 1) calibrate_links(*mpi, links, "of mpirun", out, err);
    } catch (const std::exception& error) {
      // Aborting ends all processes before anything else could be said.
      err << "rehearse-run: rank " << mpi->rank() << ": " << error.what() << '\n' << std::flush;
      out.flush();
      mpi->abort();
      throw;
    }
    return 0;
  }
#endif
  if (arguments.compute) calibrate_compute(arguments, compute, out, err);
  if (arguments.links && arguments.ranks > 1) {
    LaunchOptions options;
    options.ranks = arguments.ranks;
    options.patience_s = arguments.patience_s;
    out.flush();
    launch(options,
           [&](Transport& transport) { calibrate_links(transport, links, "on one machine", out, err); });
  }
  return 0;
}

}  // namespace rehearse
