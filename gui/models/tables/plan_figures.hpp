// Provides the figures by which plans are compared, and the Pareto front of plans in two of them.
#pragma once

#include <QString>
#include <string_view>
#include <vector>

#include "gui/models/tables/plan_file.hpp"
#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

enum class PlanFigure { step_time, time_per_sample, samples, memory, cost, energy, mfu };
inline constexpr std::size_t kPlanFigures = 7;

QString name_of(PlanFigure figure);  // "step time"
bool is_better_if_larger(PlanFigure figure);
// In seconds, samples/s, bytes, watt-hours, the file's currency or as a fraction; kNotTold: the file does not
// give it.
double value_of(const FoundPlan& plan, PlanFigure figure);
// The common unit for all plans: "ms", "GiB", "USD", "%".
Unit unit_of(const PlanFile& file, PlanFigure figure);
QString title_of(const PlanFile& file, PlanFigure figure);    // "step time (s)"
std::vector<PlanFigure> known_figures(const PlanFile& file);  // figures that at least one plan has

// Returns the Pareto front of those plans `among` that fit into memory: no other plan is better in one of the
// two figures without being worse in the other. Sorted from the best in `across` to the best in `up`.
std::vector<std::size_t> front_of(const PlanFile& file, PlanFigure across, PlanFigure up,
                                  const std::vector<bool>& among);

}  // namespace rehearse::gui
