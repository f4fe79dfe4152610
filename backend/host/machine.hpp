// Describes the machine on which a measurement was taken.
#pragma once

#include <string>

namespace rehearse {

struct Machine {
  std::string name;      // of the host, in characters that are valid in file names
  std::string date;      // "2026-11-21", UTC
  std::string hardware;  // "Intel Xeon Gold 6148, 40 logical processors, 188 GiB"
  std::string versions;  // "Linux 6.1.0, GCC 12.2.0, rehearse-run 0.2.0"
  int processors = 1;    // number that this process may use
  double memory_bytes = 0;
};
Machine this_machine();

}  // namespace rehearse
