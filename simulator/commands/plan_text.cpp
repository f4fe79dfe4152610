// The answer to a search for plans, for people.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "models/text/text.hpp"
#include "simulator/commands/plan_answer.hpp"
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
  if (best.cost_per_step) out << "      " << money_text(answer, *best.cost_per_step) << " a step";
  out << "\n\n";
}

void write_table(const PlanAnswer& answer, std::ostream& out) {
  const bool several = answer.worlds.size() > 1;
  const bool priced = answer.plans.front().cost_per_step.has_value();
  std::size_t widest = 7;
  double longest_s = 0;
  for (const AnsweredPlan& plan : answer.plans) {
    longest_s = std::max(longest_s, plan.figures.step_time_s);
    if (several) widest = std::max(widest, answer.worlds[plan.world].size());
  }
  const TimeScale time(longest_s);
  out << fmt::format("   {:>3}  {:>10}  {:>8}  {:>10}", "", "step",
                     answer.objective == "time" ? "" : answer.objective, "memory");
  if (priced) out << fmt::format("  {:>14}", answer.currency + " a step");
  if (several) out << fmt::format("  {:<{}}", "cluster", widest);
  out << "  plan\n";
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    const AnsweredPlan& plan = answer.plans[i];
    const bool front = std::count(answer.pareto.begin(), answer.pareto.end(), i) > 0;
    out << fmt::format("  {}{:>3}  {:>10}  {:>8}  {:>6} GiB", front ? "*" : " ", i + 1,
                       time(plan.figures.step_time_s), i == 0 ? "" : signed_percent(plan.slower),
                       in_gibibytes(plan.figures.memory_bytes));
    if (priced) out << fmt::format("  {:>14}", with_digits(plan.cost_per_step.value_or(0), 4));
    if (several) out << fmt::format("  {:<{}}", answer.worlds[plan.world], widest);
    out << fmt::format("  {}\n", plan.words);
    if (!plan.why.empty()) out << fmt::format("{:>7} {}\n", "", plan.why);
  }
  if (answer.pareto.size() > 1) out << "  * no other plan here is as good in time, memory and cost\n";
  out << '\n';
}

std::string space_sentence(const PlanAnswer& answer) {
  std::string text = fmt::format("Of {} plans", with_thousands(answer.space));
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", with_thousands(count), what));
  };
  add(answer.impossible, "cannot divide the model so");
  add(answer.too_large, "need more memory than a device has");
  add(answer.slower, "cannot be faster, as their work alone takes too long");
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
    std::string text = fmt::format(
        "Nearly fits: {} needs at least {} of {} GiB, and would take at least {}.", near.words,
        in_gibibytes(near.least_bytes), in_gibibytes(near.capacity_bytes), time(near.least_step_s));
    if (!near.sets.empty())
      text += fmt::format(" With {} it fits, and takes {}.", fmt::join(near.sets, ", "),
                          time(near.fitting_step_s));
    out << wrapped(text) << '\n';
  }
}

void write_changed(const PlanAnswer& answer, std::ostream& out) {
  if (answer.changed.empty()) return;
  out << "\n  What if:\n";
  const AnsweredPlan& best = answer.plans.front();
  for (const ChangedWorld& changed : answer.changed) {
    out << fmt::format("    {:<32}", changed.name);
    if (!changed.best) {
      out << "  no plan\n";
      continue;
    }
    const double ratio = changed.best->figures.step_time_s / best.figures.step_time_s;
    out << fmt::format("  {:>9}  {:>8}  {}\n", human_time_s(changed.best->figures.step_time_s),
                       signed_percent(ratio - 1), changed.same_plan ? "the same plan" : changed.best->words);
  }
}

}  // namespace

void write_plan_text(const PlanAnswer& answer, std::ostream& out) {
  if (answer.plans.empty()) {
    out << fmt::format("No plan for {} satisfies the constraints.\n\n", answer.model);
    for (const std::string& binding : answer.binding) out << wrapped(binding + ".") << '\n';
    return;
  }
  write_best(answer, out);
  write_table(answer, out);
  out << wrapped(space_sentence(answer)) << '\n';
  if (std::any_of(answer.plans.begin(), answer.plans.end(),
                  [](const AnsweredPlan& plan) { return plan.basis == PlanBasis::extended; }))
    out << wrapped(
               "Steps of many micro-batches were simulated with few of them and extended by as much as each "
               "further one takes (--exact simulates all).")
        << '\n';
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
