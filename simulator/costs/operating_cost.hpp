// What a step and a whole training cost: money, energy and carbon, from rates of the cluster and a step time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topologies/cluster.hpp"

namespace rehearse {

// What a scenario pays: [cost], and where that is silent a list of prices (topologies/prices.hpp).
struct CostTerms {
  std::string currency = "USD";                             // ISO 4217
  std::optional<Sourced> per_device_hour, per_server_hour;  // nothing: not known
  Sourced pue{1, Basis::guess, "not given"};                // power of the site over that of its computers
  Sourced carbon_g_per_kwh{0, Basis::guess, "not given"};
  Sourced energy_price_per_kwh{0, Basis::guess, "not given"};  // beside the prices; 0: they include energy
};

// Watts of a whole cluster with what its site adds (CostTerms::pue).
struct PowerDraw {
  double computing_w = 0;  // while all devices compute
  double waiting_w = 0;    // while a step runs and all devices wait: they idle, all else does not
  double idle_w = 0;       // while nothing runs
};

// All that arithmetic on step times needs. The cluster is rented whole: whole nodes, server nodes too.
struct OperatingRates {
  std::optional<double> money_per_s;  // nothing: a price is not known
  std::optional<PowerDraw> power;     // nothing: the power of a part is not known
  double energy_price_per_kwh = 0, carbon_g_per_kwh = 0;
  std::int64_t devices = 0;                  // that are paid for
  std::string missing_price, missing_power;  // a key of the scenario that would tell; empty: none is missing
};
OperatingRates operating_rates(const Cluster& cluster, const CostTerms& terms);

struct StepCost {
  std::optional<double> money, energy_wh, carbon_g;
};
// A device draws its power for `compute_share` of the step and its idle power for the rest; hosts and network
// draw theirs all the time. All results grow with both arguments, so that lower bounds give lower bounds.
StepCost step_cost(const OperatingRates& rates, double step_time_s, double compute_share);

struct TrainingCost {
  double steps = 0;  // whole ones
  double seconds = 0, device_hours = 0;
  std::optional<double> money, energy_kwh, carbon_kg;
};
// Of as many steps as train `samples`.
TrainingCost training_cost(const OperatingRates& rates, const StepCost& step, double step_time_s,
                           double samples_per_step, double samples);

}  // namespace rehearse
