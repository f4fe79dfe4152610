#include "backend/runtime/binding.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    throw RunError(
        fmt::format("cannot determine the processors that this process may use: {}", std::strerror(errno)));
  std::vector<int> allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  return allowed;
}

void bind_all_threads(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const int id = std::atoi(thread.path().filename().c_str());
    if (sched_setaffinity(id, sizeof set, &set) != 0 && errno != ESRCH)  // the thread may have ended
      throw RunError(fmt::format("this process cannot be bound to processors {}: {}",
                                 fmt::join(processors, ","), std::strerror(errno)));
  }
}

}  // namespace

Cores cores_of(const std::vector<int>& allowed) {
  Cores cores;
  std::map<std::pair<int, int>, std::size_t> known;  // index into `cores`, by package and core
  for (const int processor : allowed) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", processor);
    int package = 0, core = 0;
    const bool said = std::ifstream(topology + "physical_package_id") >> package &&
                      std::ifstream(topology + "core_id") >> core;
    if (said) {
      const auto [it, fresh] = known.try_emplace({package, core}, cores.size());
      if (!fresh) {
        cores[it->second].push_back(processor);
        continue;
      }
    }
    cores.push_back({processor});
  }
  return cores;
}

int core_of_rank(const std::vector<std::string>& mine, int rank, int cores) {
  int before = 0, all = 0;
  for (std::size_t r = 0; r < mine.size(); ++r) {
    if (mine[r] != mine[static_cast<std::size_t>(rank)]) continue;
    ++all;
    if (static_cast<int>(r) < rank) ++before;
  }
  if (all > cores)
    throw RunError(fmt::format(
        "run.bind is \"core\", and {} ranks on {} may use {} core{}; allowed: \"none\", or at "
        "most as many ranks as cores",
        all, mine[static_cast<std::size_t>(rank)].substr(0, mine[static_cast<std::size_t>(rank)].find(' ')),
        cores, cores == 1 ? "" : "s"));
  return before;
}

std::vector<int> processors_of_list(const std::string& list) {
  std::vector<int> processors;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    const int read = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (read < 1 || first < 0) return {};
    if (read == 1) last = first;
    for (int i = first; i <= last && i < CPU_SETSIZE; ++i) processors.push_back(i);
  }
  return processors;
}

int bind_near(const std::string& pci_device) {
  std::string list;
  std::string name = pci_device;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (!std::getline(std::ifstream(fmt::format("/sys/bus/pci/devices/{}/local_cpulist", name)), list))
    return 0;
  const std::vector<int> allowed = allowed_processors(), local = processors_of_list(list);
  std::vector<int> near;
  for (const int processor : allowed)
    if (std::find(local.begin(), local.end(), processor) != local.end()) near.push_back(processor);
  if (near.empty() || near.size() == allowed.size()) return 0;
  bind_all_threads(near);
  return static_cast<int>(near.size());
}

void bind_to_core(Transport& transport) {
  const Cores cores = cores_of(allowed_processors());
  const std::vector<std::string> all =
      all_gather(transport, fmt::format("{} {}", machine_name(), fmt::join(cores, ";")));
  const int core = core_of_rank(all, transport.rank(), static_cast<int>(cores.size()));
  bind_all_threads(cores[static_cast<std::size_t>(core)]);
}

}  // namespace rehearse
