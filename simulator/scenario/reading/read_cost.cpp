#include <fmt/format.h>

#include "simulator/scenario/reading/readers.hpp"
#include "topologies/prices.hpp"
#include "topologies/read_node.hpp"

namespace rehearse {
namespace {

PriceList price_list(Section& section, const std::string& base_folder) {
  if (section.is_table("prices")) {
    Section table = section.section("prices");
    return read_prices(table);
  }
  const std::string file = section.text("prices", "");
  if (file.empty()) return shipped_prices();
  Document document = Document::parse_file(beside(base_folder, file));
  Section root = document.root();
  return read_prices(root);
}

}  // namespace

CostTerms read_cost(Section& section, const Cluster& cluster, const std::string& base_folder) {
  section.expect({"prices", "currency", "price_per_device_hour", "price_per_server_hour", "pue",
                  "carbon_g_per_kwh", "energy_price_per_kwh"});
  PriceList list = price_list(section, base_folder);
  if (!list.pue || !list.carbon_g_per_kwh) {  // a user's list can omit them
    const PriceList shipped = shipped_prices();
    if (!list.pue) list.pue = shipped.pue;
    if (!list.carbon_g_per_kwh) list.carbon_g_per_kwh = shipped.carbon_g_per_kwh;
  }
  CostTerms terms;
  terms.currency = read_currency(section, list.currency);
  if (list.pue) terms.pue = *list.pue;
  if (list.carbon_g_per_kwh) terms.carbon_g_per_kwh = *list.carbon_g_per_kwh;
  if (terms.currency == list.currency) {
    if (const Price* price = find_price(list, cluster.node().device.name, cluster.name))
      terms.per_device_hour = price->per_device_hour;
    terms.per_server_hour = list.per_server_hour;
  } else if (!section.has("price_per_device_hour")) {
    section.refuse("currency", '"' + terms.currency + '"',
                   fmt::format("\"{}\", the currency of the prices, or any with cost.price_per_device_hour",
                               list.currency));
  }
  // An absent key is read, too, so that it counts as known (models/text/asked_keys.hpp).
  const auto take = [&](std::string_view key, Range range, Basis basis, auto& to) {
    const double value = section.number(key, range, range.min);
    if (section.has(key)) to = Sourced{value, basis, "set by the scenario"};
  };
  // Users who set a price know what they pay.
  take("price_per_device_hour", kMoney, Basis::measured, terms.per_device_hour);
  take("price_per_server_hour", kMoney, Basis::measured, terms.per_server_hour);
  take("energy_price_per_kwh", kMoney, Basis::measured, terms.energy_price_per_kwh);
  take("pue", kPue, Basis::guess, terms.pue);
  take("carbon_g_per_kwh", kCarbon, Basis::guess, terms.carbon_g_per_kwh);
  return terms;
}

}  // namespace rehearse
