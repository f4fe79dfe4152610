// Calibrates a processor or another device, and the links between ranks of this machine or those that mpirun
// started.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>

#include "backend/calibrate/calibrate.hpp"

namespace rehearse {

struct HostCalibrateArguments {
  CalibrateArguments common;  // without arithmetic and links
  bool compute = true, links = true;
  std::function<std::unique_ptr<Arithmetic>()> device;  // empty: a processor
  int ranks = 2;  // started here and joined by TCP; under mpirun all of its processes take part instead
  double patience_s = 60;
};

// Exit status and errors: run_calibrate(). Call it before any thread is started.
int run_host_calibrate(const HostCalibrateArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace rehearse
