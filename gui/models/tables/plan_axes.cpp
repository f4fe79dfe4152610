#include "gui/models/tables/plan_axes.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "gui/models/tables/plan_words.hpp"

namespace rehearse::gui {
namespace {

constexpr double kLogarithmicFrom = 4;   // ratio of the largest to the smallest value
constexpr double kAboveNone = 0.14;      // lower end of the values if some plans have none
constexpr double kMarkDistance = 0.075;  // minimum between two marks of numbers
constexpr int kFigureMarks = 5;
constexpr double kAlike = 1e-9;

struct Placing {
  double least = 0, most = 1, lower_end = 0;
  bool logarithmic = false;

  double operator()(double value) const {
    if (most <= least) return lower_end + (1 - lower_end) / 2;
    const double share =
        logarithmic ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
    return lower_end + share * (1 - lower_end);
  }
};

Placing placing_of(const std::set<double>& values, bool with_none) {
  Placing placing;
  placing.least = *values.begin();
  placing.most = *values.rbegin();
  placing.lower_end = with_none ? kAboveNone : 0;
  placing.logarithmic = placing.least > 0 && placing.most > kLogarithmicFrom * placing.least;
  return placing;
}

// Marks both ends, and of the other values those that have room.
std::vector<PlanAxis::Mark> marks_of(const std::set<double>& values, const Placing& placing) {
  std::vector<PlanAxis::Mark> marks;
  const double end = placing(*values.rbegin());
  for (const double value : values) {
    const double place = placing(value);
    const bool first = marks.empty(), last = value == *values.rbegin();
    if (!first && !last && (place - marks.back().place < kMarkDistance || end - place < kMarkDistance))
      continue;
    marks.push_back({place, number_text(value, value == std::round(value) ? 1 : 4)});
  }
  return marks;
}

const PlanSetting* setting_of(const FoundPlan& plan, const std::string& key) {
  const auto found = plan.settings.find(key);
  return found == plan.settings.end() ? nullptr : &found->second;
}

PlanAxis setting_axis(const PlanFile& file, const std::vector<std::string>& keys, const std::string& key) {
  PlanAxis axis;
  axis.title = QString::fromStdString(short_key(keys, key));
  axis.tip = QString::fromStdString(key);
  std::set<double> numbers;
  std::set<std::string> words;
  bool none = false;
  for (const FoundPlan& plan : file.plans) {
    const PlanSetting* setting = setting_of(plan, key);
    if (setting == nullptr)
      none = true;
    else if (setting->number)
      numbers.insert(*setting->number);
    else
      words.insert(setting->text);
  }
  if (none) axis.marks.push_back({0, "none"});
  if (words.empty()) {
    const Placing placing = placing_of(numbers, none);
    axis.scale = placing.logarithmic ? PlanAxis::Scale::logarithmic : PlanAxis::Scale::linear;
    for (const PlanAxis::Mark& mark : marks_of(numbers, placing)) axis.marks.push_back(mark);
    for (const FoundPlan& plan : file.plans) {
      const PlanSetting* setting = setting_of(plan, key);
      axis.places.push_back(setting == nullptr ? 0 : placing(*setting->number));
    }
    return axis;
  }
  axis.scale = PlanAxis::Scale::categories;
  std::set<std::string> texts = words;
  for (const FoundPlan& plan : file.plans)
    if (const PlanSetting* setting = setting_of(plan, key)) texts.insert(setting->text);
  std::map<std::string, double> places;
  const double lower_end = none ? kAboveNone : 0;
  for (const std::string& text : texts) {
    const double share =
        texts.size() == 1 ? 1 : static_cast<double>(places.size()) / static_cast<double>(texts.size() - 1);
    places[text] = lower_end + share * (1 - lower_end);
    axis.marks.push_back({places[text], QString::fromStdString(text)});
  }
  for (const FoundPlan& plan : file.plans) {
    const PlanSetting* setting = setting_of(plan, key);
    axis.places.push_back(setting == nullptr ? 0 : places[setting->text]);
  }
  return axis;
}

PlanAxis figure_axis(const PlanFile& file, PlanFigure figure) {
  PlanAxis axis;
  axis.title = title_of(file, figure);
  axis.tip = name_of(figure);
  const Unit unit = unit_of(file, figure);
  std::set<double> values;
  for (const FoundPlan& plan : file.plans)
    if (const double value = value_of(plan, figure); std::isfinite(value)) values.insert(value * unit.factor);
  const Placing placing = placing_of(values, false);
  axis.scale = placing.logarithmic ? PlanAxis::Scale::logarithmic : PlanAxis::Scale::linear;
  for (int i = 0; i < kFigureMarks && placing.most > placing.least; ++i) {
    const double share = static_cast<double>(i) / (kFigureMarks - 1);
    const double value = placing.logarithmic ? placing.least * std::pow(placing.most / placing.least, share)
                                             : placing.least + share * (placing.most - placing.least);
    axis.marks.push_back({share, number_text(value, 3)});
  }
  for (const FoundPlan& plan : file.plans) {
    const double value = value_of(plan, figure);
    axis.places.push_back(std::isfinite(value) ? placing(value * unit.factor) : kNotTold);
  }
  return axis;
}

}  // namespace

std::vector<PlanAxis> axes_of(const PlanFile& file) {
  std::vector<PlanAxis> axes;
  const std::vector<std::string> keys = varying_settings(file);
  for (const std::string& key : keys) axes.push_back(setting_axis(file, keys, key));
  for (const PlanFigure figure : known_figures(file))
    if (figure == PlanFigure::step_time || figure == PlanFigure::memory)
      axes.push_back(figure_axis(file, figure));
  return axes;
}

bool within(const std::vector<PlanAxis>& axes, std::size_t plan, const PlanRanges& ranges) {
  return std::all_of(ranges.begin(), ranges.end(), [&](const auto& of_axis) {
    const double place = axes[of_axis.first].places[plan];
    return place >= of_axis.second.least - kAlike && place <= of_axis.second.most + kAlike;
  });
}

}  // namespace rehearse::gui
