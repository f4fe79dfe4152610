// Calibrates a processor or another device, and the links between ranks on this machine or ranks that mpirun
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

// Links to measure instead of this machine's.
struct LinkGround {
  std::function<void(double patience_s, const std::function<void(Transport&)>& body)> with_ranks;
  std::string title;
  std::function<std::string(int rank)> node;
  // Sets what is known about the links between two ranks, for a trial of messages.
  std::function<void(LinkTrial& trial)> describe;
};

// The carrier of the links between ranks, and the settings that are forced on it.
struct LinkWay {
  std::string algorithm, protocol;                                  // empty: the carrier chooses
  std::function<std::unique_ptr<LinkCarrier>(Transport&)> carrier;  // empty: the ranks' transport
};

// How ranks map to nodes: ranks on the same machine are devices of one node (by_machine), each rank is a
// separate node (containers, namespaces), or all ranks are devices of one node.
enum class RanksAre { by_machine, nodes, devices };

struct HostCalibrateArguments {
  CalibrateArguments common;  // without arithmetic and links
  bool compute = true, links = true;
  std::function<std::unique_ptr<Arithmetic>()> device;  // empty: a processor
  // Each entry results in a profile. Ranks are restarted for each, because libraries read forced settings
  // only once.
  std::vector<LinkWay> ways = std::vector<LinkWay>(1);
  // Ranks are started here and joined by TCP; processes that something else has started (started.hpp) take
  // part instead.
  int ranks = 2;
  RanksAre ranks_are = RanksAre::by_machine;
  std::optional<LinkGround> ground;
  double patience_s = 60;
};

// Exit status and errors are those of run_calibrate(). Must be called before any thread is started.
int run_host_calibrate(const HostCalibrateArguments& arguments, std::ostream& out);

}  // namespace rehearse
