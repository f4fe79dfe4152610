// Describes money, energy and carbon in words.
#include <fmt/format.h>

#include "simulator/report/format.hpp"
#include "simulator/report/report.hpp"
#include "simulator/trace/run_cost.hpp"

namespace rehearse {
namespace {

std::string unknown_without(const std::string& key) {
  return "unknown without " + key;
}

}  // namespace

std::string cost_sentence(const Result& result) {
  const Scenario& s = result.scenario;
  const RunCost cost = run_cost(s, result.metrics);
  const OperatingRates& rates = cost.rates;
  // If energy is paid for separately, the cost is unknown unless the energy is known.
  const std::string& money_key = rates.missing_price.empty() ? rates.missing_power : rates.missing_price;
  if (!cost.step.money && !cost.step.energy_wh)
    return fmt::format("Cost of a step: {}; energy: {}.", unknown_without(money_key),
                       unknown_without(rates.missing_power));
  std::string text = "A step costs ";
  if (cost.step.money) {
    const Sourced& price = *s.cost.per_device_hour;
    const int servers = s.cluster->server_nodes();
    text += fmt::format("{} ({} at {}{} {} an hour{}{})", in_money(*cost.step.money, s.cost.currency),
                        counted(static_cast<double>(rates.devices), device_noun(s.cluster->node().device)),
                        price.basis == Basis::guess ? "a guessed " : "", with_digits(price.value, 3),
                        s.cost.currency,
                        rates.devices > s.cluster->devices()
                            ? fmt::format(", {} used: nodes are paid whole", s.cluster->devices())
                            : "",
                        servers > 0 ? fmt::format(", {} at {}", counted(servers, "server node"),
                                                  with_digits(s.cost.per_server_hour->value, 3))
                                    : "");
  }
  if (cost.step.energy_wh) text += (cost.step.money ? " and " : "") + in_watt_hours(*cost.step.energy_wh);
  if (!cost.step.money) text += fmt::format("; money: {}", unknown_without(money_key));
  if (!cost.step.energy_wh) text += fmt::format("; energy: {}", unknown_without(rates.missing_power));
  return text + '.';
}

std::string training_sentence(const Result& result) {
  const Scenario& s = result.scenario;
  const RunCost cost = run_cost(s, result.metrics);
  if (!cost.training) return "";
  const TrainingCost& t = *cost.training;
  const double tokens = s.training.target_samples * tokens_per_sample(s.model, s.training.sequence_length);
  std::string text =
      fmt::format("Training on {} takes {}, in {}: {} {}-hours",
                  tokens > 0 ? with_prefix(tokens) + " tokens"
                             : with_prefix(s.training.target_samples) + ' ' + s.model.sample_unit,
                  counted(t.steps, "step"), duration(t.seconds), with_prefix(t.device_hours),
                  device_noun(s.cluster->node().device));
  if (t.money) text += ", " + in_money(*t.money, s.cost.currency);
  if (t.energy_kwh) text += ", " + in_watt_hours(1000 * *t.energy_kwh);
  if (t.carbon_kg) text += ", " + in_grams(1000 * *t.carbon_kg) + " CO2";
  return text + '.';
}

}  // namespace rehearse
