// Lists what NCCL can be forced to use: the values of NCCL_ALGO and NCCL_PROTO, and the collectives that they
// support.
#pragma once

#include <array>
#include <string_view>

#include "simulator/schedule/op.hpp"

namespace rehearse {

// An algorithm and what it supports (NCCL, src/device/generate.py: algos_of_coll, and required_cuda() for the
// algorithms that support only the Simple protocol).
struct NcclAlgorithm {
  std::string_view name;
  std::array<bool, kCollectiveNames.size()> kinds;  // by CollectiveKind; all-to-all consists of messages
  bool only_simple = false;
};
inline constexpr NcclAlgorithm kNcclAlgorithms[] = {
    {"Ring", {true, true, true, false, true, true}},
    {"Tree", {true, false, false, false, false, false}},
    {"CollnetDirect", {true, true, true, false, false, false}, true},
    {"CollnetChain", {true, false, false, false, false, false}, true},
    {"NVLS", {true, true, true, false, false, false}, true},
    {"NVLSTree", {true, false, false, false, false, false}, true},
    {"PAT", {false, true, true, false, false, false}, true},
};
inline constexpr std::string_view kNcclProtocols[] = {"LL", "LL128", "Simple"};

// Returns whether the algorithm supports the protocol. Empty names leave the choice to NCCL.
constexpr bool has_protocol(std::string_view algorithm, std::string_view protocol) {
  for (const NcclAlgorithm& a : kNcclAlgorithms)
    if (a.name == algorithm && a.only_simple) return protocol.empty() || protocol == "Simple";
  return true;
}
// Returns whether a setting makes sense for a collective: whether the algorithm has it. All-to-all only goes
// with empty names, because neither variable affects the messages of which it consists.
constexpr bool has_collective(std::string_view algorithm, std::string_view protocol, CollectiveKind kind) {
  if (kind == CollectiveKind::all_to_all) return algorithm.empty() && protocol.empty();
  for (const NcclAlgorithm& a : kNcclAlgorithms)
    if (a.name == algorithm) return a.kinds[static_cast<std::size_t>(kind)];
  return true;
}

}  // namespace rehearse
