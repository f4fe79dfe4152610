#include "backend/host/machine.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <ctime>
#include <fstream>

namespace rehearse {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const auto colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "unknown processor";
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

Machine this_machine() {
  Machine m;
  utsname system{};
  uname(&system);
  for (const char c : std::string(system.nodename))
    m.name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' ? c : '-';
  if (m.name.empty()) m.name = "machine";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 16> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d", &utc);
  m.date = date.data();
  m.processors = usable_processors();
  m.memory_bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  m.hardware = fmt::format("{}, {} logical processors, {:.1f} GiB", processor_name(), m.processors,
                           m.memory_bytes / 1073741824.0);
  m.versions = fmt::format("{} {}, {}", system.sysname, system.release, compiler());
  return m;
}

}  // namespace rehearse
