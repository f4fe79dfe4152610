// What a measurement was taken on.
#pragma once

#include <string>

namespace rehearse {

struct Machine {
  std::string name;      // of the host, in letters that file names bear
  std::string date;      // "2026-11-21", UTC
  std::string hardware;  // "Intel Xeon Gold 6148, 40 logical processors, 188 GiB"
  std::string versions;  // "Linux 6.1.0, GCC 12.2.0, rehearse-run 0.1.0"
  int processors = 1;    // that this process may use
  double memory_bytes = 0;
};
Machine this_machine();

}  // namespace rehearse
