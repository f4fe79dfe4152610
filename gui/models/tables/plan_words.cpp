#include "gui/models/tables/plan_words.hpp"

#include <fmt/format.h>

#include <QStringList>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

namespace rehearse::gui {
namespace {

constexpr std::array<std::string_view, 5> kDegrees = {
    "strategy.tensor", "strategy.context", "strategy.expert", "strategy.pipeline", "strategy.data"};

std::size_t place_among_degrees(const std::string& key) {
  return static_cast<std::size_t>(std::find(kDegrees.begin(), kDegrees.end(), key) - kDegrees.begin());
}

// Leaves out arrays, such as the layers of each pipeline stage; the plan's scenario file has them.
std::vector<std::string> all_settings(const PlanFile& file) {
  std::set<std::string> keys;
  for (const FoundPlan& plan : file.plans)
    for (const auto& [key, value] : plan.settings)
      if (value.text.rfind('[', 0) != 0) keys.insert(key);
  std::vector<std::string> order(keys.begin(), keys.end());
  std::stable_sort(order.begin(), order.end(), [](const std::string& a, const std::string& b) {
    return place_among_degrees(a) < place_among_degrees(b);
  });
  return order;
}

bool varies(const PlanFile& file, const std::string& key) {
  std::set<std::string> values;
  for (const FoundPlan& plan : file.plans) {
    const auto setting = plan.settings.find(key);
    values.insert(setting == plan.settings.end() ? std::string() : setting->second.text);
  }
  return values.size() > 1;
}

QString in_units(const PlanFile& file, const FoundPlan& plan, PlanFigure figure) {
  const double value = value_of(plan, figure);
  if (!std::isfinite(value)) return {};
  const Unit unit = unit_of(file, figure);
  return unit.name.isEmpty() ? number_text(value * unit.factor)
                             : number_text(value * unit.factor) + " " + unit.name;
}

const char* reason_of(const std::string& why) {
  if (why == "memory") return "do not fit into memory";
  if (why == "bound") return "cannot be among the best, by a lower bound on their time";
  if (why == "constraint") return "violate a constraint";
  return nullptr;
}

}  // namespace

std::vector<std::string> varying_settings(const PlanFile& file) {
  std::vector<std::string> keys = all_settings(file);
  std::erase_if(keys, [&](const std::string& key) { return !varies(file, key); });
  return keys;
}

std::string short_key(const std::vector<std::string>& keys, const std::string& key) {
  const auto end_of = [](const std::string& of) { return of.substr(of.rfind('.') + 1); };
  const auto same = std::count_if(keys.begin(), keys.end(),
                                  [&](const std::string& other) { return end_of(other) == end_of(key); });
  return same > 1 ? key : end_of(key);
}

QString label_of(const PlanFile& file, std::size_t plan) {
  switch (file.plans[plan].origin) {
    case FoundPlan::Origin::ranked:
      return QString("plan %1").arg(plan + 1);
    case FoundPlan::Origin::own:
      return "own plan";
    case FoundPlan::Origin::too_large:
      break;
  }
  const auto before =
      std::count_if(file.plans.begin(), file.plans.begin() + static_cast<std::ptrdiff_t>(plan),
                    [](const FoundPlan& p) { return p.origin == FoundPlan::Origin::too_large; });
  return QString("too large %1").arg(before + 1);
}

QString settings_text(const PlanFile& file, const FoundPlan& plan) {
  const std::vector<std::string> keys = all_settings(file);
  std::string degrees, others;
  for (const std::string& key : keys) {
    const auto setting = plan.settings.find(key);
    if (setting == plan.settings.end()) continue;
    const bool degree = place_among_degrees(key) < kDegrees.size();
    if (!degree && !varies(file, key)) continue;
    if (degree && !varies(file, key) && setting->second.text == "1") continue;
    std::string& into = degree ? degrees : others;
    into += fmt::format("{}{} {}",
                        into.empty() ? ""
                        : degree     ? " x "
                                     : ", ",
                        short_key(keys, key), setting->second.text);
  }
  return QString::fromStdString(degrees + (degrees.empty() || others.empty() ? "" : ", ") + others);
}

QString description_of(const PlanFile& file, std::size_t number) {
  const FoundPlan& plan = file.plans[number];
  QString text = label_of(file, number);
  text[0] = text[0].toUpper();
  if (plan.is_base && plan.origin == FoundPlan::Origin::ranked) text += ", the scenario's own plan";
  if (std::isfinite(plan.devices)) text += QString(", %1 devices").arg(count_cell(plan.devices).text);
  text += ":\n" + settings_text(file, plan) + "\n";
  QStringList figures;
  for (const PlanFigure figure : known_figures(file)) {
    const QString told = in_units(file, plan, figure);
    if (told.isEmpty()) continue;
    if (figure == PlanFigure::samples)
      figures << told + " samples/s";
    else
      figures << name_of(figure) + (figure == PlanFigure::step_time && !plan.simulated ? " at least " : " ") +
                     told;
  }
  text += figures.join(", ");
  if (!plan.fits) text += "\nDoes not fit into memory";
  if (plan.indistinguishable && plan.slower > 0) text += "\nToo close to the best plan to distinguish";
  if (!plan.why.empty()) text += "\n" + QString::fromStdString(plan.why);
  return text;
}

QString result_sentence(const PlanFile& file, const QString& title) {
  QString text = title + ": ";
  if (file.plans.empty() || file.plans.front().origin != FoundPlan::Origin::ranked) {
    text += "no plan was found that can be run.";
  } else {
    const FoundPlan& best = file.plans.front();
    text += settings_text(file, best) + ": " + in_units(file, best, PlanFigure::step_time) + " a step.";
    const auto own = std::find_if(file.plans.begin(), file.plans.end(),
                                  [](const FoundPlan& plan) { return plan.is_base; });
    if (own != file.plans.end() && own->slower > 0)
      text += " The scenario's own plan is " + number_text(100 * own->slower, 3) + " % slower.";
  }
  if (!file.searched) return text;
  text += " " + count_cell(*file.searched).text + " plans were searched";
  if (file.simulated) text += ", " + count_cell(*file.simulated).text + " of them simulated";
  return text + ".";
}

QStringList search_sentences(const PlanFile& file) {
  QStringList sentences;
  QStringList reasons;
  for (const auto& [why, number] : file.ruled_out) {
    const char* told = reason_of(why);
    reasons << count_cell(number).text + " " +
                   (told != nullptr ? QString(told) : "were ruled out by " + QString::fromStdString(why));
  }
  if (!reasons.isEmpty()) sentences << reasons.join("; ") + ".";
  for (const std::string& sentence : file.binding) sentences << QString::fromStdString(sentence);
  return sentences;
}

}  // namespace rehearse::gui
