// Declares `rehearse-run calibrate`, which measures this machine and writes its device profile and link
// profile.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/calibrate/measure_compute.hpp"
#include "backend/calibrate/measure_links.hpp"
#include "backend/training/arithmetic.hpp"

namespace rehearse {

struct CalibrateArguments {
  Arithmetic* arithmetic = nullptr;             // the device; null: no device profile
  std::vector<LinkTrial> links;                 // of this rank; empty: no link profile
  std::string links_title;                      // the connection: "TCP over lo, 2 processes on one machine"
  std::string links_hardware;                   // in addition to the machine's: "NVIDIA H100"; may be empty
  std::vector<std::string> links_notes;         // on the meaning of their times
  std::string links_algorithm, links_protocol;  // forced ones, part of the profile's name; empty: none
  bool print_bandwidths = false;                // for each size, as nccl-tests does
  std::string table;                            // CSV file for the bandwidths; empty: none
  bool extend_table = false;                    // appends to a file with lines of other links
  std::string folder = ".";                     // where NAME-device.toml and NAME-links.toml are written
  std::string name;                             // empty: the host's name
  // A preset or a device file from which published numbers (peaks, memory, compute units) are taken; empty:
  // peaks and bandwidth are the measured ones.
  std::string base_device;
  double link_gbps = 0;  // the links' rate: profile has efficiencies instead of bandwidths; 0: unknown
  double most_s = 150;   // for all measurements together
  std::vector<TrainedKernel> trained;  // measured in addition to the usual kernels
  std::string command;                 // the command line, stated in the profiles
  std::string versions;                // of the libraries in use: "Open MPI 4.1.4"
};

// Returns the exit status: 0. Writes the summary to `out`, and progress to a terminal. Throws InputError
// (folder, base_device) and RunError (device, peers, disk).
int run_calibrate(const CalibrateArguments& arguments, std::ostream& out);

}  // namespace rehearse
