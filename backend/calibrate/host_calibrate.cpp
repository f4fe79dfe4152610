#include "backend/calibrate/host_calibrate.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "backend/calibrate/link_ranks.hpp"
#include "backend/host/host_arithmetic.hpp"
#include "backend/host/join.hpp"

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
  JoinOptions join;
  join.ranks = arguments.ranks;
  join.patience_s = arguments.patience_s;
  if (choose_transport(join) == "local") {
    if (arguments.compute) calibrate_compute(arguments, compute, out, err);
    if (!arguments.links || arguments.ranks < 2) return 0;
    out.flush();
    with_ranks(join, [&](Transport& ranks) { calibrate_links(ranks, links, "on one machine", out, err); });
    return 0;
  }
  if (arguments.compute) join.patience_s += arguments.common.most_s;  // the others wait while rank 0 computes
  with_ranks(join, [&](Transport& ranks) {
    if (arguments.compute && ranks.rank() == 0) calibrate_compute(arguments, compute, out, err);
    if (arguments.links && ranks.ranks() > 1) calibrate_links(ranks, links, "started together", out, err);
  });
  return 0;
}

}  // namespace rehearse
