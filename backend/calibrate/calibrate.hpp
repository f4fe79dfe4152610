// `rehearse-run calibrate`: measures this machine and writes its device profile and its link profile.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/calibrate/measure_links.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse {

struct CalibrateArguments {
  Arithmetic* arithmetic = nullptr;      // the device; null: no device profile
  std::vector<LinkTrial> links;          // of this rank; empty: no link profile
  std::string links_title;               // what joins the ranks: "TCP over lo, 2 processes on one machine"
  std::string links_hardware;            // beside the machine's: "NVIDIA H100"; may be empty
  std::vector<std::string> links_notes;  // on what their times mean
  std::string links_algorithm, links_protocol;  // that were forced, which names the profile; empty: none
  bool print_bandwidths = false;                // of each size, as nccl-tests does
  std::string table;                            // CSV file of these; empty: none
  bool extend_table = false;                    // it has lines of other links
  std::string folder = ".";                     // where NAME-device.toml and NAME-links.toml are written
  std::string name;                             // empty: the host's
  // A preset or a device file whose published numbers (peaks, memory, compute units) are kept; empty: peaks
  // and bandwidth are what was reached.
  std::string base_device;
  double link_gbps = 0;  // the links' own rate: efficiencies are written instead of bandwidths; 0: unknown
  double most_s = 150;   // for all measurements together
  std::string command;   // as it was called: stands in the profiles
  std::string versions;  // of the libraries in use: "Open MPI 4.1.4"
};

// Returns the exit status: 0. Throws InputError (folder, base_device) and RunError (device, peers, disk). The
// summary goes to `out`, progress to a terminal.
int run_calibrate(const CalibrateArguments& arguments, std::ostream& out);

}  // namespace rehearse
