// The figures by which plans are compared, and the plans that no other one beats in two of them.
#pragma once

#include <QString>
#include <string_view>
#include <vector>

#include "gui/models/plan_file.hpp"
#include "gui/models/value_table.hpp"

namespace rehearse::gui {

enum class PlanFigure { step_time, time_per_sample, samples, memory, cost, energy, mfu };
inline constexpr std::size_t kPlanFigures = 7;

QString name_of(PlanFigure figure);  // "step time"
bool is_better_if_larger(PlanFigure figure);
// In SI units, bytes, watt hours, the file's currency or as a share; kNotTold.
double value_of(const FoundPlan& plan, PlanFigure figure);
// In which all plans are told: "ms", "GiB", "USD", "%".
Unit unit_of(const PlanFile& file, PlanFigure figure);
QString title_of(const PlanFile& file, PlanFigure figure);    // "step time (s)"
std::vector<PlanFigure> known_figures(const PlanFile& file);  // of at least one plan

// Of those `among` that fit into memory, the plans that no other one beats in one of the two figures without
// losing in the other; from the best in `across` to the best in `up`.
std::vector<std::size_t> front_of(const PlanFile& file, PlanFigure across, PlanFigure up,
                                  const std::vector<bool>& among);

}  // namespace rehearse::gui
