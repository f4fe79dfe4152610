#include "topologies/prices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/data_folder.hpp"
#include "models/text/printable.hpp"

namespace rehearse {
namespace {

// Whether the text is "2025", "2025-06" or "2025-06-05".
bool is_date(const std::string& text) {
  constexpr std::string_view kPattern = "0000-00-00";
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kPattern[i] == '-' ? text[i] != '-' : !digit) return false;
  }
  return true;
}

// Reads value, basis, source, date and uncertainty from the section itself, not from a nested table.
Sourced read_dated(Section& section, std::string_view value_key) {
  Sourced number;
  number.value = section.number(value_key, kMoney);
  number.basis = static_cast<Basis>(section.choice("basis", kBasisNames));
  const std::string source = section.text("source"), date = section.text("date");
  number.uncertainty = section.number("uncertainty", {0, 2}, -1);
  if (source.empty()) section.refuse("source", "an empty text", "where the price comes from");
  if (!is_date(date))
    section.refuse("date", '"' + date.substr(0, 40) + '"', "a text \"2025-06-05\", \"2025-06\" or \"2025\"");
  number.source = fmt::format("{}, {}", source, date);
  return number;
}

}  // namespace

std::string read_currency(Section& section, const std::string& fallback) {
  const std::string currency = section.text("currency", fallback);
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (currency.size() != 3 || !std::all_of(currency.begin(), currency.end(), is_capital))
    section.refuse("currency", '"' + currency.substr(0, 40) + '"',
                   "three capital letters (ISO 4217), such as \"USD\"");
  return currency;
}

PriceList read_prices(Section& section) {
  PriceList list;
  list.title = section.text("title", title_of_file(section.place().file));
  list.currency = read_currency(section, "USD");
  for (Section& one : section.sections("price")) {
    Price& price = list.prices.emplace_back();
    price.device = one.text("device", "");
    price.cluster = one.text("cluster", "");
    price.per_device_hour = read_dated(one, "per_device_hour");
    const bool twice = std::any_of(list.prices.begin(), list.prices.end() - 1, [&](const Price& before) {
      return before.device == price.device && before.cluster == price.cluster;
    });
    if (twice)
      throw InputError(one.place(),
                       fmt::format("{} is a second price of {}{}; allowed: one", one.path(),
                                   price.device.empty() ? "any device" : "device \"" + price.device + '"',
                                   price.cluster.empty() ? "" : " in cluster \"" + price.cluster + '"'));
    one.finish();
  }
  Section server = section.section("server");
  if (server.present()) list.per_server_hour = read_dated(server, "per_server_hour");
  server.finish();
  const Sourced pue = read_sourced(section, "pue", kPue, 1);
  const Sourced carbon = read_sourced(section, "carbon_g_per_kwh", kCarbon, 1);
  if (section.has("pue")) list.pue = pue;
  if (section.has("carbon_g_per_kwh")) list.carbon_g_per_kwh = carbon;
  section.finish();
  return list;
}

PriceList shipped_prices() {
  const std::string path = preset_path("topologies/prices", "list");
  if (path.empty())
    throw InputError({}, fmt::format("the list of prices, list.toml, is missing; searched: {}",
                                     searched_folders("topologies/presets/prices")));
  Document document = Document::parse_file(path);
  Section root = document.root();
  return read_prices(root);
}

const Price* find_price(const PriceList& list, const std::string& device, const std::string& cluster) {
  const Price* best = nullptr;
  int best_names = -1;
  for (const Price& price : list.prices) {
    if (!price.device.empty() && price.device != device) continue;
    if (!price.cluster.empty() && price.cluster != cluster) continue;
    const int names = (price.cluster.empty() ? 0 : 2) + (price.device.empty() ? 0 : 1);
    if (names <= best_names) continue;
    best = &price;
    best_names = names;
  }
  return best;
}

}  // namespace rehearse
