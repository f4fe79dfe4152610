// Computes parallel coordinates of plans: one axis for each setting in which they differ and for each
// resulting figure.
#pragma once

#include <QString>
#include <map>
#include <string>
#include <vector>

#include "gui/models/tables/plan_file.hpp"

namespace rehearse::gui {

struct PlanAxis {
  enum class Scale { linear, logarithmic, categories } scale = Scale::linear;
  QString title, tip;  // e.g. titles "tensor" and "step time (s)", tip "strategy.tensor"
  struct Mark {
    double place = 0;  // 0 at the lower end, 1 at the upper end
    QString text;
  };
  std::vector<Mark> marks;     // from the lower end
  std::vector<double> places;  // by plan; kNotTold: the plan has no value for it
};

// Numeric axes are logarithmic if all values are above 0 and the largest is more than four times the
// smallest, else linear; words are evenly spaced. Plans without the setting are placed at the lower end,
// marked "none".
std::vector<PlanAxis> axes_of(const PlanFile& file);

// A part of an axis, both ends included.
struct PlanRange {
  double least = 0, most = 1;
};
using PlanRanges = std::map<std::size_t, PlanRange>;  // by axis
bool within(const std::vector<PlanAxis>& axes, std::size_t plan, const PlanRanges& ranges);

}  // namespace rehearse::gui
