#include "topologies/cabling.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace rehearse {
namespace {

// Sebastiano Vigna's splitmix64: the finalizer of a counter-based generator, used as a hash.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::unique_ptr<Cabling> make_cabling(const Fabric& fabric, const Node& node, int nodes, int server_nodes) {
  switch (fabric.kind) {
    case Fabric::Kind::single_switch:
    case Fabric::Kind::links:
      return nullptr;
    case Fabric::Kind::leaf_spine:
    case Fabric::Kind::rail:
      return make_leaf_spine(fabric, node, nodes + server_nodes);
    case Fabric::Kind::fat_tree:
      return make_fat_tree(fabric, node, nodes + server_nodes);
    case Fabric::Kind::ring:
    case Fabric::Kind::torus:
      return make_torus(fabric, nodes, server_nodes);
    case Fabric::Kind::dragonfly:
      return make_dragonfly(fabric);
  }
  return nullptr;
}

int ports_down(const Fabric& fabric, const Node& node) {
  // As many ports down as the remaining complete cables carry at this oversubscription.
  const double down_over_up = fabric.oversubscription * fabric.link_bandwidth / node.nic_bandwidth;
  const double down = std::floor(fabric.radix * down_over_up / (1 + down_over_up) + 1e-9);
  return static_cast<int>(std::clamp(down, 1.0, fabric.radix - 1.0));
}

bool take_number(std::string_view& text, std::string_view prefix, int& number) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  const char* const begin = text.data() + prefix.size();
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || number < 0 || *begin == '-' || (*begin == '0' && after != begin + 1))
    return false;
  text.remove_prefix(static_cast<std::size_t>(after - text.data()));
  return true;
}

bool is_number(std::string_view text, std::string_view prefix, int& number) {
  return take_number(text, prefix, number) && text.empty();
}

std::string node_name_of(int node, int nodes) {
  return node < nodes ? fmt::format("node{}", node) : fmt::format("server{}", node - nodes);
}

std::uint64_t hash_of(const NodePair& flow) {
  std::uint64_t hash = mixed(1);  // a fixed seed
  for (const int part : {flow.from, flow.to, flow.from_nic, flow.to_nic})
    hash = mixed(hash ^ static_cast<std::uint64_t>(part));
  return hash;
}

}  // namespace rehearse
