#include "topologies/uplinks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "topologies/cabling.hpp"

namespace rehearse {
namespace {

constexpr double kRounding = 1e-9;  // of a quotient of bandwidths

// Returns the prime factors of n, largest first.
std::vector<std::int64_t> prime_factors(std::int64_t n) {
  std::vector<std::int64_t> factors;
  for (std::int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) factors.push_back(p);
  if (n > 1) factors.push_back(n);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

std::string gigabits(double bytes_per_s) {
  return fmt::format("{:.4g} Gbit/s", bytes_per_s * 8 / 1e9);
}

}  // namespace

std::vector<Uplinks> nested_uplinks(std::int64_t ports) {
  std::vector<Uplinks> all;
  const auto add = [&](std::int64_t spines, std::int64_t fold, double ports_per_cable) {
    if (spines <= kMostSpines) all.push_back({static_cast<int>(spines), fold, ports_per_cable});
  };
  // From `spines` to r times as many, each spine's destinations are divided by their next digit in base r;
  // the steps in between divide them by that digit modulo 2, 4, ...
  std::int64_t spines = 1;
  for (const std::int64_t r : prime_factors(ports)) {
    for (std::int64_t n = 1; n < r; n *= 2) {
      const std::int64_t fold = spines * r, digits = (r + n - 1) / n;
      const std::int64_t patterns = ports / fold * digits;
      add(spines * n, n > 1 ? fold : 0, static_cast<double>(patterns));
    }
    spines *= r;
  }
  for (; spines <= kMostSpines; spines *= 2)
    add(spines, 0, static_cast<double>(ports) / static_cast<double>(spines));
  return all;
}

Uplinks fewest_uplinks(const Fabric& fabric, const Node& node, std::int64_t ports) {
  const double most = fabric.oversubscription * fabric.link_bandwidth / node.nic_bandwidth * (1 + kRounding);
  const std::vector<Uplinks> all = nested_uplinks(ports);
  const auto enough =
      std::find_if(all.begin(), all.end(), [&](const Uplinks& u) { return u.ports_per_cable <= most; });
  return enough == all.end() ? all.back() : *enough;
}

std::int64_t ports_below_leaf(const Fabric& fabric, const Node& node) {
  return std::int64_t{fabric.nodes_per_leaf} * (fabric.kind == Fabric::Kind::rail ? 1 : node.nics);
}

std::string oversubscription_note(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric();
  const Node& node = cluster.node();
  const double asked = fabric.asked_oversubscription, given = fabric.oversubscription;
  if (std::abs(given - asked) <= kRounding * asked) return "";
  const std::string cable = gigabits(fabric.link_bandwidth);
  if (fabric.kind == Fabric::Kind::fat_tree) {
    const int down = ports_down(fabric, node);
    return fmt::format(
        "Oversubscription {:.4g} would need a fraction of a cable. An edge switch of {} ports has {} below "
        "and "
        "{} "
        "above, all of {}: {:.4g} to 1.",
        asked, fabric.radix, down, fabric.radix - down, cable, given);
  }
  std::string others;
  const std::int64_t ports = ports_below_leaf(fabric, node);
  const std::vector<Uplinks> all = nested_uplinks(ports);
  for (auto u = all.rbegin(); u != all.rend(); ++u)
    if (u->spines <= ports)
      others += fmt::format("{}{:.4g}", others.empty() ? "" : ", ",
                            u->ports_per_cable * node.nic_bandwidth / fabric.link_bandwidth);
  return fmt::format(
      "Oversubscription {:.4g} would need a fraction of a cable. {} uplink{} of {} for {} NICs of {} give{} "
      "{:.4g} to 1. Whole cables give {} (or set spines and link_gbps).",
      asked, fabric.spines, fabric.spines == 1 ? "" : "s", cable, ports, gigabits(node.nic_bandwidth),
      fabric.spines == 1 ? "s" : "", given, others);
}

}  // namespace rehearse
