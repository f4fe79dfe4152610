#include "topologies/power.hpp"

#include <fmt/format.h>

namespace rehearse {

void read_use_and_idle(Section& section, std::string_view use_key, std::string_view idle_key, Sourced& use,
                       Sourced& idle) {
  use = read_sourced(section, use_key, kWatts, 1);
  idle = read_sourced(section, idle_key, kWatts, 1);
  if (use.value > 0 && idle.value <= 0)
    section.refuse(use_key, "given", fmt::format("only with {}", idle_key));
  if (idle.value > use.value)
    section.refuse(
        idle_key, use.value > 0 ? fmt::format("{} W, above {}", idle.value, use_key) : std::string("given"),
        use.value > 0 ? fmt::format("at most {} W", use.value) : fmt::format("only with {}", use_key));
}

NodePower read_node_power(Section& node) {
  NodePower power;
  read_use_and_idle(node, kNodePowerKeys[0], kNodePowerKeys[1], power.host, power.host_idle);
  power.nic = read_sourced(node, kNodePowerKeys[2], kWatts, 1);
  return power;
}

PortPower read_port_power(Section& fabric) {
  PortPower power;
  read_use_and_idle(fabric, kPortPowerKeys[0], kPortPowerKeys[1], power.use, power.idle);
  return power;
}

}  // namespace rehearse
