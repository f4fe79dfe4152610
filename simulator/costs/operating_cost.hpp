// Computes what a step and an entire training run cost in money, energy and carbon, from a cluster's rates
// and a step time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topologies/cluster.hpp"

namespace rehearse {

// The prices that a scenario pays: from [cost], or from a list of prices (topologies/prices.hpp) where [cost]
// is silent.
struct CostTerms {
  std::string currency = "USD";                             // ISO 4217
  std::optional<Sourced> per_device_hour, per_server_hour;  // nullopt: unknown
  Sourced pue{1, Basis::guess, "not given"};  // power of the site divided by that of its computers
  Sourced carbon_g_per_kwh{0, Basis::guess, "not given"};
  Sourced energy_price_per_kwh{0, Basis::guess, "not given"};  // added to the prices; 0: they include energy
};

// Power of the entire cluster in watts, including what its site adds (CostTerms::pue).
struct PowerDraw {
  double computing_w = 0;  // while all devices compute
  double waiting_w = 0;    // while a step runs and all devices wait: only the devices are idle
  double idle_w = 0;       // while no step runs
};

// All inputs for computing costs from step times. Entire nodes are rented, server nodes included.
struct OperatingRates {
  std::optional<double> money_per_s;  // nullopt: a price is unknown
  std::optional<PowerDraw> power;     // nullopt: the power of a part is unknown
  double energy_price_per_kwh = 0, carbon_g_per_kwh = 0;
  std::int64_t devices = 0;                  // number that is paid for
  std::string missing_price, missing_power;  // scenario key that would supply it; empty: none is missing
};
OperatingRates operating_rates(const Cluster& cluster, const CostTerms& terms);

struct StepCost {
  std::optional<double> money, energy_wh, carbon_g;
};
// Returns the cost of a step. A device draws its full power for `compute_share` of the step and its idle
// power for the rest; hosts and network draw theirs all the time. All results grow with both arguments, so
// lower bounds give lower bounds.
StepCost step_cost(const OperatingRates& rates, double step_time_s, double compute_share);

struct TrainingCost {
  double steps = 0;  // rounded up to entire steps
  double seconds = 0, device_hours = 0;
  std::optional<double> money, energy_kwh, carbon_kg;
};
// Returns the cost of as many steps as train `samples`.
TrainingCost training_cost(const OperatingRates& rates, const StepCost& step, double step_time_s,
                           double samples_per_step, double samples);

}  // namespace rehearse
