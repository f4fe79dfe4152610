#include "backend/runtime/placement.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "backend/runtime/control.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

std::string framed(const std::vector<std::string>& texts) {
  std::string whole;
  for (const std::string& text : texts) {
    const std::uint64_t size = text.size();
    whole.append(reinterpret_cast<const char*>(&size), sizeof size);
    whole += text;
  }
  return whole;
}

std::vector<std::string> unframed(const std::string& whole) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < whole.size();) {
    std::uint64_t size = whole.size();  // too large, unless it is read below
    if (whole.size() - at >= sizeof size) std::memcpy(&size, whole.data() + at, sizeof size);
    at += sizeof size;
    if (at > whole.size() || size > whole.size() - at)
      throw RunError("a message of rank 0 to all ranks is incomplete");
    texts.push_back(whole.substr(at, size));
    at += size;
  }
  return texts;
}

std::optional<int> number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0 || value > 1'000'000) return {};
  return static_cast<int>(value);
}

}  // namespace

std::vector<std::string> all_gather(Transport& transport, const std::string& own) {
  return unframed(broadcast(transport, framed(gather(transport, own))));
}

// Includes both names: containers on one machine have different host names and may see different GPUs, and
// different machines may have the same host name.
std::string machine_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return std::string(name) + " " + boot;
}

RankPlace place_of_process() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "LOCAL_RANK", "SLURM_LOCALID"})
    if (const char* text = std::getenv(variable)) return {machine_name(), text};
  return {machine_name(), ""};
}

int local_rank(const std::vector<RankPlace>& places, int rank) {
  const RankPlace& own = places[static_cast<std::size_t>(rank)];
  std::set<int> said;
  std::size_t here = 0;
  int before = 0;
  for (std::size_t r = 0; r < places.size(); ++r) {
    if (places[r].machine != own.machine) continue;
    ++here;
    if (static_cast<int>(r) < rank) ++before;
    if (const auto n = number(places[r].local_rank)) said.insert(*n);
  }
  // Ranks that were not launched one by one inherit the same local rank from their parent.
  return said.size() == here ? *number(own.local_rank) : before;
}

int local_rank(Transport& transport) {
  const RankPlace own = place_of_process();
  std::vector<RankPlace> places;
  for (const std::string& text : all_gather(transport, framed({own.machine, own.local_rank}))) {
    const std::vector<std::string> parts = unframed(text);
    places.push_back({parts.at(0), parts.at(1)});
  }
  return local_rank(places, transport.rank());
}

std::vector<std::string> placement_notes(const std::vector<std::string>& nodes,
                                         const std::vector<std::string>& machines) {
  std::vector<std::string> notes;
  if (std::set<std::string>(machines.begin(), machines.end()).size() < 2) return notes;
  const auto name = [](const std::string& machine) { return machine.substr(0, machine.find(' ')); };
  // Finds for each text the others that occur with it, and reports the first text that has several.
  const auto tell = [&](const std::vector<std::string>& of, const std::vector<std::string>& others,
                        const auto& sentence) {
    std::map<std::string, std::set<std::string>> beside;
    for (std::size_t r = 0; r < of.size(); ++r) beside[of[r]].insert(others[r]);
    for (const std::string& first : of) {
      const std::set<std::string>& several = beside[first];
      if (several.size() < 2) continue;
      std::string names;
      for (const std::string& other : several) names += (names.empty() ? "" : ", ") + name(other);
      return notes.push_back(sentence(name(first), names));
    }
  };
  tell(nodes, machines, [](const std::string& node, const std::string& all) {
    return fmt::format("ranks of one node of the scenario ran on several machines ({}: {})", node, all);
  });
  tell(machines, nodes, [](const std::string& machine, const std::string& all) {
    return fmt::format(
        "several nodes of the scenario ran on one machine ({}: {}): there is no network between them",
        machine, all);
  });
  return notes;
}

int most_alike(const std::vector<std::string>& texts) {
  std::map<std::string, int> count;
  int most = 0;
  for (const std::string& text : texts)
    if (!text.empty()) most = std::max(most, ++count[text]);
  return most;
}

}  // namespace rehearse
