// Writes the answer to a search for plans as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "models/text/text.hpp"
#include "simulator/commands/plan/plan_answer.hpp"
#include "simulator/report/format.hpp"
#include "simulator/report/wrap.hpp"

namespace rehearse {
namespace {

std::string memory_text(const AnsweredPlan& plan) {
  const std::string bytes = in_gibibytes(plan.figures.memory_bytes);
  return plan.capacity_bytes > 0 ? fmt::format("{} of {} GiB", bytes, in_gibibytes(plan.capacity_bytes))
                                 : fmt::format("{} GiB", bytes);
}

std::string money_text(const PlanAnswer& answer, double money) {
  return fmt::format("{} {}", with_digits(money, 4), answer.currency);
}

// Returns a text such as "1.23 USD and 3.4 kWh a step; the whole training 12.3 days, 45.6 k GPU-hours, 123 k
// USD, 456 MWh".
std::string cost_line(const PlanAnswer& answer, const AnsweredPlan& plan) {
  std::vector<std::string> parts;
  if (plan.cost.money) parts.push_back(money_text(answer, *plan.cost.money));
  if (plan.cost.energy_wh) parts.push_back(in_watt_hours(*plan.cost.energy_wh));
  std::string line = parts.empty() ? "" : fmt::format("{} a step", fmt::join(parts, " and "));
  if (!plan.training) return line;
  const TrainingCost& all = *plan.training;
  line += fmt::format("{}the entire training {} days, {} {}-hours", line.empty() ? "" : "; ",
                      with_digits(all.seconds / 86400, 3), with_prefix(all.device_hours),
                      answer.devices.substr(0, answer.devices.size() - 1));
  if (all.money) line += fmt::format(", {} {}", with_prefix(*all.money), answer.currency);
  if (all.energy_kwh) line += ", " + in_watt_hours(*all.energy_kwh * 1000);
  if (all.carbon_kg) line += fmt::format(", {} t CO2", with_prefix(*all.carbon_kg / 1000));
  return line;
}

void write_best(const PlanAnswer& answer, std::ostream& out) {
  const AnsweredPlan& best = answer.plans.front();
  const PlanFigures& f = best.figures;
  out << fmt::format("The best plan for {} on {} ({} {}), global batch {}\n\n  {}\n\n", answer.model,
                     answer.worlds[best.world], with_thousands(best.devices), answer.devices,
                     with_thousands(static_cast<long>(best.samples)), best.words);
  out << fmt::format("  step {}      {} {}/s", TimeScale(f.step_time_s)(f.step_time_s),
                     with_prefix(f.samples_per_s), answer.sample_unit);
  if (f.tokens_per_s > 0) out << fmt::format("      {} tokens/s", with_prefix(f.tokens_per_s));
  out << fmt::format("      MFU {}      {}", in_percent(f.mfu), memory_text(best));
  out << '\n';
  if (const std::string cost = cost_line(answer, best); !cost.empty()) out << "  " << cost << '\n';
  out << '\n';
}

void write_table(const PlanAnswer& answer, std::ostream& out) {
  const bool several = answer.worlds.size() > 1;
  const bool priced = answer.plans.front().cost.money.has_value();
  std::size_t widest = 7;
  double longest_s = 0;
  for (const AnsweredPlan& plan : answer.plans) {
    longest_s = std::max(longest_s, plan.figures.step_time_s);
    if (several) widest = std::max(widest, answer.worlds[plan.world].size());
  }
  const TimeScale time(longest_s);
  out << fmt::format("   {:>3}  {:>10}  {:>8}  {:>10}", "", "step",
                     answer.objective == "time" ? "" : answer.objective, "memory");
  const bool whole = priced && answer.plans.front().training.has_value();
  if (priced) out << fmt::format("  {:>14}", answer.currency + " a step");
  if (whole) out << fmt::format("  {:>9}  {:>12}", "days", answer.currency);
  if (several) out << fmt::format("  {:<{}}", "cluster", widest);
  out << "  plan\n";
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const AnsweredPlan& plan = answer.plans[i];
    const bool front = std::count(answer.pareto.begin(), answer.pareto.end(), i) > 0;
    out << fmt::format("  {}{:>3}  {:>10}  {:>8}  {:>6} GiB", front ? "*" : " ", i + 1,
                       time(plan.figures.step_time_s), i == 0 ? "" : signed_percent(plan.slower),
                       in_gibibytes(plan.figures.memory_bytes));
    if (priced) out << fmt::format("  {:>14}", with_digits(plan.cost.money.value_or(0), 4));
    if (whole && plan.training)
      out << fmt::format("  {:>9}  {:>12}", with_digits(plan.training->seconds / 86400, 3),
                         with_prefix(plan.training->money.value_or(0)));
    if (several) out << fmt::format("  {:<{}}", answer.worlds[plan.world], widest);
    out << fmt::format("  {}\n", plan.words);
    if (!plan.why.empty()) out << fmt::format("{:>7} {}\n", "", plan.why);
  }
  if (answer.pareto.size() > 1)
    out << "  * no other plan in this table is as good in time, memory and cost\n";
  out << '\n';
}

std::string space_sentence(const PlanAnswer& answer) {
  std::string text = fmt::format("Of {} plans", with_thousands(answer.space));
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", with_thousands(count), what));
  };
  add(answer.impossible, "cannot divide the model this way");
  add(answer.too_large, "need more memory than a device has");
  add(answer.slower, "cannot be faster, because their work alone takes too long");
  add(answer.beyond_limits, "cannot satisfy the constraints");
  add(answer.failed, "could not be simulated");
  add(answer.simulated, answer.simulated == 1 ? "was simulated" : "were simulated");
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? " " : i + 1 == parts.size() ? ", and " : ", ") + parts[i];
  return text + fmt::format(". No plan among them is more than {} faster than the best one.",
                            in_percent(answer.tolerance));
}

void write_near(const PlanAnswer& answer, std::ostream& out) {
  const TimeScale time(answer.plans.front().figures.step_time_s);
  for (const NearPlan& near : answer.near) {
    std::string text = fmt::format("Nearly fits: {} needs at least {} of {} GiB, and would take at least {}.",
                                   near.words, in_gibibytes(near.least_bytes),
                                   in_gibibytes(near.capacity_bytes), time(near.least_step_s));
    if (!near.sets.empty())
      text += fmt::format(" With {} it fits, and takes {}.", fmt::join(near.sets, ", "),
                          time(near.fitting_step_s));
    out << wrapped(text) << '\n';
  }
}

// Tells for each key of the scenario that some plans have no use for, which plans these are.
void write_ignored(const PlanAnswer& answer, std::ostream& out) {
  std::map<std::string, std::vector<std::size_t>> plans;
  for (std::size_t i = 0; i < answer.plans.size(); ++i)
    for (const std::string& key : answer.plans[i].ignored) plans[key].push_back(i + 1);
  for (const auto& [key, numbers] : plans) {
    const bool all = numbers.size() == answer.plans.size();
    out << wrapped(fmt::format(
               "The scenario's {} does not apply to {}, which ignore{} it.", key,
               all ? "these plans"
                   : fmt::format("plan{} {}", numbers.size() > 1 ? "s" : "", fmt::join(numbers, ", ")),
               all || numbers.size() > 1 ? "" : "s"))
        << '\n';
  }
}

void write_changed(const PlanAnswer& answer, std::ostream& out) {
  if (answer.changed.empty()) return;
  out << "\n  What if:\n";
  const AnsweredPlan& best = answer.plans.front();
  const TimeScale time(best.figures.step_time_s);
  for (const ChangedWorld& changed : answer.changed) {
    out << fmt::format("    {:<32}", changed.name);
    if (!changed.best) {
      out << "  no plan\n";
      continue;
    }
    const double ratio = changed.best->figures.step_time_s / best.figures.step_time_s;
    out << fmt::format("  {:>9}  {:>8}  {}\n", time(changed.best->figures.step_time_s),
                       signed_percent(ratio - 1), changed.same_plan ? "the same plan" : changed.best->words);
  }
}

}  // namespace

std::string decision_sentence(const OpenDecision& open) {
  const PlanDecision& decision = open.decision;
  std::string text = fmt::format(
      "Plans {} and {} are too close to distinguish: they differ by {}, and the constants make this "
      "uncertain by {}, most of it from {}.",
      open.first + 1, open.second + 1, in_percent(std::expm1(decision.difference)),
      in_percent(std::expm1(decision.uncertainty)), decision.constant);
  if (!decision.measure.empty())
    text +=
        fmt::format(" To decide, compare with your own measurement: {}.", fmt::join(decision.measure, ", "));
  return text;
}

void write_plan_text(const PlanAnswer& answer, std::ostream& out) {
  if (answer.plans.empty()) {
    out << fmt::format("No plan for {} satisfies the constraints.\n\n", answer.model);
    for (const std::string& binding : answer.binding) out << wrapped(binding + ".") << '\n';
    return;
  }
  write_best(answer, out);
  write_table(answer, out);
  out << wrapped(space_sentence(answer)) << '\n';
  if (!answer.framework.empty())
    out << wrapped(fmt::format("All plans count the costs of the framework {} (training.framework).",
                               answer.framework))
        << '\n';
  write_ignored(answer, out);
  if (std::any_of(answer.plans.begin(), answer.plans.end(),
                  [](const AnsweredPlan& plan) { return plan.basis == PlanBasis::extended; }))
    out << wrapped(
               "Steps of many micro-batches were simulated with few of them and extrapolated by the time of "
               "each further one (--exact simulates all).")
        << '\n';
  if (const auto& interval = answer.plans.front().interval_s)
    out << wrapped(fmt::format("Nine of ten measurements of plan 1 are expected between {} and {}.",
                               human_time_s(interval->first), human_time_s(interval->second)))
        << '\n';
  for (const OpenDecision& open : answer.open) out << wrapped(decision_sentence(open)) << '\n';
  write_near(answer, out);
  if (answer.own) {
    const double ratio = answer.own->figures.step_time_s / answer.plans.front().figures.step_time_s;
    out << wrapped(fmt::format("The scenario's own plan ({}) takes {}, {}{}.", answer.own->words,
                               human_time_s(answer.own->figures.step_time_s), signed_percent(ratio - 1),
                               answer.own->fits ? "" : ", and does not fit into memory"))
        << '\n';
  }
  write_changed(answer, out);
}

}  // namespace rehearse
