// Describes the power of the parts of a cluster, in watts, each figure with its source.
#pragma once

#include <array>
#include <string_view>

#include "topologies/device.hpp"

namespace rehearse {

// Power of one node without its devices. Value 0: not known.
struct NodePower {
  Sourced host;       // processors, memory, drives, fans and NVSwitches, while the node trains
  Sourced host_idle;  // the same, while the node is idle
  Sourced nic;        // one NIC; traffic has little effect
};

// Power of one port of a switch with its share of the switch. Value 0: not known.
struct PortPower {
  Sourced use, idle;
};

inline constexpr std::array<std::string_view, 3> kNodePowerKeys = {"host_power_w", "host_idle_power_w",
                                                                   "nic_power_w"};
inline constexpr std::array<std::string_view, 2> kPortPowerKeys = {"port_power_w", "port_idle_power_w"};
inline constexpr Range kWatts{0, 1e7, true};

// Reads two tables {value, basis, source} of a section: power in use and when idle. Throws InputError if
// `use` is given without `idle`, or is below it.
void read_use_and_idle(Section& section, std::string_view use_key, std::string_view idle_key, Sourced& use,
                       Sourced& idle);
NodePower read_node_power(Section& node);
PortPower read_port_power(Section& fabric);

}  // namespace rehearse
