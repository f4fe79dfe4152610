// Reads a list of prices: what devices cost per hour and related figures, each with its date and source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/device.hpp"

namespace rehearse {

// The price of a device in a cluster; an empty name matches any. `source` ends with the date of the price.
struct Price {
  std::string device, cluster;
  Sourced per_device_hour;  // in the list's currency; includes the node that holds the device
};

struct PriceList {
  std::string title;
  std::string currency;  // ISO 4217, e.g. "USD"
  std::vector<Price> prices;
  std::optional<Sourced> per_server_hour;   // of a node without devices
  std::optional<Sourced> pue;               // power usage effectiveness: site power over computer power
  std::optional<Sourced> carbon_g_per_kwh;  // CO2 equivalent
};

inline constexpr Range kMoney{0, 1e12}, kPue{1, 10}, kCarbon{0, 10'000};

// Reads a list as explained in topologies/presets/prices/list.toml and finishes the section. Throws
// InputError if two prices are for the same device and cluster.
PriceList read_prices(Section& section);
// Returns the list that comes with Rehearse.
PriceList shipped_prices();
// Returns the most specific price for this device in this cluster: one that names the cluster takes
// precedence over one that names only the device. nullptr if there is none.
const Price* find_price(const PriceList& list, const std::string& device, const std::string& cluster);
// Reads the key `currency` of a section. Throws InputError if it is not three capital letters.
std::string read_currency(Section& section, const std::string& fallback);

}  // namespace rehearse
