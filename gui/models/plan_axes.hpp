// Parallel coordinates of plans: an axis for each setting in which they differ and for what comes of it.
#pragma once

#include <QString>
#include <map>
#include <string>
#include <vector>

#include "gui/models/plan_file.hpp"

namespace rehearse::gui {

struct PlanAxis {
  enum class Scale { linear, logarithmic, categories } scale = Scale::linear;
  QString title, tip;  // "tensor", "step time (s)"; "strategy.tensor"
  struct Mark {
    double place = 0;  // 0 at the lower end, 1 at the upper one
    QString text;
  };
  std::vector<Mark> marks;     // from the lower end
  std::vector<double> places;  // by plan; kNotTold: the plan has no value there
};

// Numbers stand on a logarithmic axis if they are above 0 and the largest is more than four times the least,
// else on a linear one; words each have a place. Plans that lack a setting stand below, at "none".
std::vector<PlanAxis> axes_of(const PlanFile& file);

// A part of an axis, its ends included.
struct PlanRange {
  double least = 0, most = 1;
};
using PlanRanges = std::map<std::size_t, PlanRange>;  // by axis
bool within(const std::vector<PlanAxis>& axes, std::size_t plan, const PlanRanges& ranges);

}  // namespace rehearse::gui
