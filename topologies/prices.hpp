// What devices cost an hour, and what goes with it: a list of prices, each with its date and source.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/device.hpp"

namespace rehearse {

// Of a device in a cluster; an empty name stands for any. `source` ends with the price's date.
struct Price {
  std::string device, cluster;
  Sourced per_device_hour;  // in the list's currency; the node that holds the device is included
};

struct PriceList {
  std::string title;
  std::string currency;  // ISO 4217: "USD"
  std::vector<Price> prices;
  std::optional<Sourced> per_server_hour;   // a node without devices
  std::optional<Sourced> pue;               // power usage effectiveness: the site's power over its computers'
  std::optional<Sourced> carbon_g_per_kwh;  // CO2 equivalent
};

inline constexpr Range kMoney{0, 1e12}, kPue{1, 10}, kCarbon{0, 10'000};

// Reads a list, as topologies/presets/prices/list.toml explains it; finishes the section. InputError if two
// prices are of the same device and cluster.
PriceList read_prices(Section& section);
// The list that is shipped.
PriceList shipped_prices();
// The price of this device in this cluster, else in any; nullptr if there is none.
const Price* find_price(const PriceList& list, const std::string& device, const std::string& cluster);
// A key `currency` of a section; InputError if it is not three capital letters.
std::string read_currency(Section& section, const std::string& fallback);

}  // namespace rehearse
