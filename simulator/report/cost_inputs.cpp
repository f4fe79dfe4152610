#include "simulator/report/cost_inputs.hpp"

namespace rehearse {

std::vector<Input> cost_inputs(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  const Node& node = cluster.node();
  const CostTerms& terms = scenario.cost;
  const bool servers = cluster.server_nodes() > 0, nics = node.nic_bandwidth > 0,
             ports = cluster.switch_ports() > 0;
  std::vector<Input> inputs;
  const auto add = [&](const char* name, const std::string& of, const Sourced& number) {
    inputs.push_back({Input::Group::cost, number.basis, name, of, number.source});
  };
  const auto add_watts = [&](const char* name, const std::string& of, const Sourced& number) {
    if (number.value > 0) add(name, of, number);
  };
  const std::string of_site = "the site";
  if (terms.per_device_hour) add("price of an hour", node.device.name, *terms.per_device_hour);
  if (servers && terms.per_server_hour) add("price of an hour", "a server node", *terms.per_server_hour);
  if (terms.energy_price_per_kwh.value > 0) add("price of energy", of_site, terms.energy_price_per_kwh);
  add_watts("power", node.device.name, node.device.power_w);
  add_watts("idle power", node.device.name, node.device.idle_power_w);
  add_watts("host power", cluster.name, node.power.host);
  if (nics) add_watts("NIC power", cluster.name, node.power.nic);
  if (ports) add_watts("switch port power", cluster.name, cluster.fabric().port_power.use);
  add("power usage effectiveness", of_site, terms.pue);
  add("carbon intensity", of_site, terms.carbon_g_per_kwh);
  return inputs;
}

}  // namespace rehearse
