#include "simulator/costs/operating_cost.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

constexpr double kSecondsPerHour = 3600, kJoulesPerWh = 3600;

std::int64_t rented(int whole, int used) {
  return whole > 0 ? whole : used;
}

// Returns the key of the first part whose power is unknown; empty if all are known.
std::string missing_power_key(const Cluster& cluster) {
  const Node& node = cluster.node();
  if (node.device.power_w.value <= 0) return "cluster.node.device.power_w";
  if (node.power.host.value <= 0) return "cluster.node.host_power_w";
  if (node.nic_bandwidth > 0 && node.power.nic.value <= 0) return "cluster.node.nic_power_w";
  if (cluster.switch_ports() > 0 && cluster.fabric().port_power.use.value <= 0)
    return "cluster.fabric.port_power_w";
  return "";
}

PowerDraw power_draw(const Cluster& cluster, double pue) {
  const Node& node = cluster.node();
  const auto nodes = static_cast<double>(cluster.nodes()),
             hosts = nodes + static_cast<double>(cluster.server_nodes());
  const auto used = static_cast<double>(cluster.devices()),
             all = nodes * static_cast<double>(rented(node.whole_devices, node.devices));
  const double nics = node.nic_bandwidth > 0
                          ? static_cast<double>(rented(node.whole_nics, node.nics)) * node.power.nic.value
                          : 0;
  const auto ports = static_cast<double>(cluster.switch_ports());
  const PortPower& port = cluster.fabric().port_power;
  const double idle_devices_w = all * node.device.idle_power_w.value;
  PowerDraw draw;
  draw.idle_w = idle_devices_w + hosts * (node.power.host_idle.value + nics) + ports * port.idle.value;
  draw.waiting_w = idle_devices_w + hosts * (node.power.host.value + nics) + ports * port.use.value;
  draw.computing_w = draw.waiting_w + used * (node.device.power_w.value - node.device.idle_power_w.value);
  for (double* watts : {&draw.idle_w, &draw.waiting_w, &draw.computing_w}) *watts *= pue;
  return draw;
}

}  // namespace

OperatingRates operating_rates(const Cluster& cluster, const CostTerms& terms) {
  OperatingRates rates;
  rates.devices = cluster.nodes() * rented(cluster.node().whole_devices, cluster.node().devices);
  rates.energy_price_per_kwh = terms.energy_price_per_kwh.value;
  rates.carbon_g_per_kwh = terms.carbon_g_per_kwh.value;
  if (!terms.per_device_hour) {
    rates.missing_price = "cost.price_per_device_hour";
  } else if (cluster.server_nodes() > 0 && !terms.per_server_hour) {
    rates.missing_price = "cost.price_per_server_hour";
  } else {
    const double servers =
        cluster.server_nodes() > 0 ? cluster.server_nodes() * terms.per_server_hour->value : 0;
    rates.money_per_s =
        (static_cast<double>(rates.devices) * terms.per_device_hour->value + servers) / kSecondsPerHour;
  }
  rates.missing_power = missing_power_key(cluster);
  if (rates.missing_power.empty()) rates.power = power_draw(cluster, terms.pue.value);
  return rates;
}

StepCost step_cost(const OperatingRates& rates, double step_time_s, double compute_share) {
  StepCost cost;
  if (rates.power) {
    const double share = std::clamp(compute_share, 0.0, 1.0);
    const double watts = rates.power->waiting_w + share * (rates.power->computing_w - rates.power->waiting_w);
    cost.energy_wh = step_time_s * watts / kJoulesPerWh;
    cost.carbon_g = *cost.energy_wh / 1000 * rates.carbon_g_per_kwh;
  }
  const bool pays_energy = rates.energy_price_per_kwh > 0;
  if (!rates.money_per_s || (pays_energy && !cost.energy_wh)) return cost;
  cost.money = step_time_s * *rates.money_per_s;
  if (pays_energy) *cost.money += *cost.energy_wh / 1000 * rates.energy_price_per_kwh;
  return cost;
}

TrainingCost training_cost(const OperatingRates& rates, const StepCost& step, double step_time_s,
                           double samples_per_step, double samples) {
  TrainingCost cost;
  cost.steps = std::ceil(samples / samples_per_step);
  cost.seconds = cost.steps * step_time_s;
  cost.device_hours = static_cast<double>(rates.devices) * cost.seconds / kSecondsPerHour;
  if (step.money) cost.money = cost.steps * *step.money;
  if (step.energy_wh) cost.energy_kwh = cost.steps * *step.energy_wh / 1000;
  if (step.carbon_g) cost.carbon_kg = cost.steps * *step.carbon_g / 1000;
  return cost;
}

}  // namespace rehearse
