#include "backend/calibrate/host_calibrate.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "backend/calibrate/link_ranks.hpp"
#include "backend/host/host_arithmetic.hpp"
#include "backend/host/join.hpp"
#include "backend/host/wide_code.hpp"
#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

std::string node_of(const HostCalibrateArguments& arguments, int rank) {
  if (arguments.ground) return arguments.ground->node(rank);
  if (arguments.ranks_are == RanksAre::nodes) return fmt::format("node{}", rank);
  return arguments.ranks_are == RanksAre::devices ? "node0" : machine_name();
}

void calibrate_links(Transport& transport, CalibrateArguments arguments, const HostCalibrateArguments& choice,
                     const LinkWay& way, std::ostream& out) {
  const std::optional<LinkGround>& ground = choice.ground;
  LinkRanks ranks(transport, node_of(choice, transport.rank()),
                  way.carrier ? way.carrier(transport) : nullptr);
  if (transport.rank() != 0) return ranks.follow();
  const LinkCarrier& carrier = ranks.carrier();
  arguments.links = ranks.trials();
  arguments.links_title =
      ground ? ground->title
             : fmt::format("{}, {} ranks on {} {}{}", carrier.name(), transport.ranks(), ranks.nodes(),
                           choice.ranks_are == RanksAre::by_machine ? "machine" : "node",
                           ranks.nodes() == 1 ? "" : "s");
  if (way.carrier) arguments.versions = carrier.name();
  arguments.links_hardware = carrier.hardware();
  arguments.links_notes = carrier.notes();
  if (!ground && choice.ranks_are != RanksAre::by_machine)
    arguments.links_notes.emplace_back(choice.ranks_are == RanksAre::nodes
                                           ? "Each rank counts as a separate node (--ranks-are nodes)"
                                           : "All ranks count as devices of one node (--ranks-are devices)");
  arguments.links_algorithm = way.algorithm;
  arguments.links_protocol = way.protocol;
  arguments.print_bandwidths = way.carrier != nullptr;
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
  if (!choice.device) {
    if (!arguments.versions.empty()) arguments.versions += ", ";
    arguments.versions += product_library();
  }
  run_calibrate(arguments, out);
}

}  // namespace

int run_host_calibrate(const HostCalibrateArguments& arguments, std::ostream& out) {
  CalibrateArguments compute = arguments.common, links = arguments.common;
  if (arguments.compute && arguments.links) {
    compute.most_s *= 0.6;
    links.most_s *= 0.4;
  }
  links.most_s /= static_cast<double>(arguments.ways.size());
  JoinOptions join;
  join.ranks = arguments.ranks;
  join.patience_s = arguments.patience_s;
  if (arguments.compute) join.patience_s += compute.most_s;  // all ranks wait for rank 0
  const auto measure_device = [&] {
    if (arguments.compute) calibrate_compute(arguments, compute, out);
    out.flush();
  };
  const auto measure_links = [&](Transport& ranks, const LinkWay& way) {
    if (ranks.ranks() < 2) throw InputError({}, "links need at least 2 ranks; there is 1");
    calibrate_links(ranks, links, arguments, way, out);
  };
  // Ranks are forked, which CUDA does not survive, so a GPU is measured after the links.
  const bool links_first = arguments.device != nullptr;
  if (arguments.ground || choose_transport(join) == "local") {
    if (!links_first) measure_device();
    const bool alone = !arguments.ground && arguments.compute && arguments.ranks < 2;
    for (const LinkWay& way : arguments.links && !alone ? arguments.ways : std::vector<LinkWay>()) {
      const auto measure = [&](Transport& ranks) { measure_links(ranks, way); };
      if (arguments.ground)
        arguments.ground->with_ranks(join.patience_s, measure);
      else
        with_ranks(join, measure);
      links.extend_table = true;
    }
    if (links_first) measure_device();
    return 0;
  }
  if (arguments.ways.size() > 1)
    throw InputError({}, fmt::format("{} algorithms and protocols of NCCL for ranks that run already; "
                                     "allowed: one, or ranks that rehearse-run starts (--ranks)",
                                     arguments.ways.size()));
  with_ranks(join, [&](Transport& ranks) {
    if (!links_first && ranks.rank() == 0) measure_device();
    if (arguments.links && (ranks.ranks() > 1 || !arguments.compute))
      measure_links(ranks, arguments.ways.front());
    if (links_first && ranks.rank() == 0) measure_device();
  });
  return 0;
}

}  // namespace rehearse
