#include "gui/models/tables/plan_figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse::gui {
namespace {

constexpr double kGibibyte = 1073741824;

struct FigureFacts {
  const char* name;
  double FoundPlan::*value;
  bool larger_is_better;
};

constexpr std::array<FigureFacts, kPlanFigures> kFigures = {
    {{"step time", &FoundPlan::step_time_s, false},
     {"time per sample", &FoundPlan::time_per_sample_s, false},
     {"samples/s", &FoundPlan::samples_per_s, true},
     {"memory", &FoundPlan::memory_bytes, false},
     {"cost per step", &FoundPlan::cost_per_step, false},
     {"energy per step", &FoundPlan::energy_wh_per_step, false},
     {"MFU", &FoundPlan::mfu, true}}};

const FigureFacts& facts_of(PlanFigure figure) {
  return kFigures[static_cast<std::size_t>(figure)];
}

}  // namespace

QString name_of(PlanFigure figure) {
  return QString::fromLatin1(facts_of(figure).name);
}

bool is_better_if_larger(PlanFigure figure) {
  return facts_of(figure).larger_is_better;
}

double value_of(const FoundPlan& plan, PlanFigure figure) {
  return plan.*facts_of(figure).value;
}

Unit unit_of(const PlanFile& file, PlanFigure figure) {
  double largest = 0;
  for (const FoundPlan& plan : file.plans)
    if (const double value = value_of(plan, figure); std::isfinite(value)) largest = std::max(largest, value);
  switch (figure) {
    case PlanFigure::step_time:
    case PlanFigure::time_per_sample:
      return unit_of_seconds(largest);
    case PlanFigure::memory:
      return {1 / kGibibyte, "GiB"};
    case PlanFigure::cost:
      return {1, QString::fromStdString(file.currency)};
    case PlanFigure::energy:
      return largest >= 1e4 ? Unit{1e-3, "kWh"} : Unit{1, "Wh"};
    case PlanFigure::mfu:
      return {100, "%"};
    case PlanFigure::samples:
      break;
  }
  return {};
}

QString title_of(const PlanFile& file, PlanFigure figure) {
  const QString unit = unit_of(file, figure).name;
  return unit.isEmpty() ? name_of(figure) : QString("%1 (%2)").arg(name_of(figure), unit);
}

std::vector<PlanFigure> known_figures(const PlanFile& file) {
  std::vector<PlanFigure> known;
  for (std::size_t i = 0; i < kPlanFigures; ++i) {
    const auto figure = static_cast<PlanFigure>(i);
    if (std::any_of(file.plans.begin(), file.plans.end(),
                    [&](const FoundPlan& plan) { return std::isfinite(value_of(plan, figure)); }))
      known.push_back(figure);
  }
  return known;
}

std::vector<std::size_t> front_of(const PlanFile& file, PlanFigure across, PlanFigure up,
                                  const std::vector<bool>& among) {
  // Returns a value for which smaller is better.
  const auto cost = [&](std::size_t plan, PlanFigure figure) {
    const double value = value_of(file.plans[plan], figure);
    return is_better_if_larger(figure) ? -value : value;
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < file.plans.size(); ++i)
    if (among[i] && file.plans[i].fits && std::isfinite(cost(i, across)) && std::isfinite(cost(i, up)))
      order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(cost(a, across), cost(a, up)) < std::pair(cost(b, across), cost(b, up));
  });
  std::vector<std::size_t> front;
  for (const std::size_t plan : order)
    if (front.empty() || cost(plan, up) < cost(front.back(), up)) front.push_back(plan);
  return front;
}

}  // namespace rehearse::gui
