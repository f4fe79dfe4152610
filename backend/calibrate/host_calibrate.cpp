#include "backend/calibrate/host_calibrate.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "backend/calibrate/link_ranks.hpp"
#include "backend/host/host_arithmetic.hpp"
#include "backend/host/join.hpp"
#include "backend/runtime/placement.hpp"
#include "models/base/error.hpp"

namespace rehearse {
namespace {

void calibrate_links(Transport& transport, CalibrateArguments arguments,
                     const std::optional<LinkGround>& ground, std::ostream& out) {
  LinkRanks ranks(transport, ground ? ground->node(transport.rank()) : machine_name());
  if (transport.rank() != 0) return ranks.follow();
  arguments.links = ranks.trials();
  arguments.links_title = ground
                              ? ground->title
                              : fmt::format("{}, {} ranks on {} machine{}", transport.kind(),
                                            transport.ranks(), ranks.nodes(), ranks.nodes() == 1 ? "" : "s");
  for (LinkTrial& trial : arguments.links)
    if (ground && trial.ranks == 0) ground->describe(trial);
  run_calibrate(arguments, out);
  ranks.end();
}

void calibrate_compute(const HostCalibrateArguments& choice, CalibrateArguments arguments,
                       std::ostream& out) {
  const std::unique_ptr<Arithmetic> device =
      choice.device ? choice.device() : std::make_unique<HostArithmetic>();
  arguments.arithmetic = device.get();
  run_calibrate(arguments, out);
}

}  // namespace

int run_host_calibrate(const HostCalibrateArguments& arguments, std::ostream& out) {
  CalibrateArguments compute = arguments.common, links = arguments.common;
  if (arguments.compute && arguments.links) {
    compute.most_s *= 0.6;
    links.most_s *= 0.4;
  }
  JoinOptions join;
  join.ranks = arguments.ranks;
  join.patience_s = arguments.patience_s;
  if (arguments.compute) join.patience_s += compute.most_s;  // all wait for rank 0
  const auto measure_links = [&](Transport& ranks) {
    if (ranks.ranks() < 2) throw InputError({}, "links need at least 2 ranks; there is 1");
    calibrate_links(ranks, links, arguments.ground, out);
  };
  if (arguments.ground || choose_transport(join) == "local") {
    if (arguments.compute) calibrate_compute(arguments, compute, out);
    if (!arguments.links || (!arguments.ground && arguments.compute && arguments.ranks < 2)) return 0;
    out.flush();
    if (arguments.ground)
      arguments.ground->with_ranks(join.patience_s, measure_links);
    else
      with_ranks(join, measure_links);
    return 0;
  }
  with_ranks(join, [&](Transport& ranks) {
    if (arguments.compute && ranks.rank() == 0) calibrate_compute(arguments, compute, out);
    if (arguments.links && (ranks.ranks() > 1 || !arguments.compute)) measure_links(ranks);
  });
  return 0;
}

}  // namespace rehearse
