// Calibrates a processor or another device, and the links between ranks of this machine or those that mpirun
// started.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "backend/calibrate/calibrate.hpp"
#include "backend/runtime/link_carrier.hpp"
#include "backend/runtime/transport.hpp"

namespace rehearse {

// Links that are measured instead of this machine's.
struct LinkGround {
  std::function<void(double patience_s, const std::function<void(Transport&)>& body)> with_ranks;
  std::string title;
  std::function<std::string(int rank)> node;
  // Fills what is known of the links between two ranks, of a trial of messages.
  std::function<void(LinkTrial& trial)> describe;
};

// What carries the links between ranks, and what of it is forced.
struct LinkWay {
  std::string algorithm, protocol;                                  // empty: chosen by what carries them
  std::function<std::unique_ptr<LinkCarrier>(Transport&)> carrier;  // empty: the ranks' transport
};

// What ranks on one machine stand for: devices of one node where they share a machine (by_machine), each a
// node of its own (containers, namespaces), or all of them devices of one node.
enum class RanksAre { by_machine, nodes, devices };

struct HostCalibrateArguments {
  CalibrateArguments common;  // without arithmetic and links
  bool compute = true, links = true;
  std::function<std::unique_ptr<Arithmetic>()> device;  // empty: a processor
  // A profile for each. Ranks are started anew for each, as libraries read what is forced once.
  std::vector<LinkWay> ways = std::vector<LinkWay>(1);
  // Started here and joined by TCP; if something else has started processes (started.hpp), they take part.
  int ranks = 2;
  RanksAre ranks_are = RanksAre::by_machine;
  std::optional<LinkGround> ground;
  double patience_s = 60;
};

// Exit status and errors: run_calibrate(). Call it before any thread is started.
int run_host_calibrate(const HostCalibrateArguments& arguments, std::ostream& out);

}  // namespace rehearse
