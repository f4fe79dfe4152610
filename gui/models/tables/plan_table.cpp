#include "gui/models/tables/plan_table.hpp"

#include <QRegularExpression>
#include <QStringList>
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "gui/models/tables/plan_words.hpp"

namespace rehearse::gui {
namespace {

struct PlanColumn {
  Column column;
  std::function<Cell(std::size_t plan)> cell;
};
using PlanColumns = std::vector<PlanColumn>;

Cell yes_cell(bool yes) {
  return text_cell(yes ? "yes" : "no");
}

Cell label_cell(const PlanFile& file, std::size_t number) {
  const FoundPlan& plan = file.plans[number];
  const bool ranked = plan.origin == FoundPlan::Origin::ranked;
  Cell cell = text_cell(label_of(file, number) + (plan.is_base && ranked ? " (own)" : ""));
  cell.number = static_cast<double>(number) + 1;
  if (plan.is_base) {
    cell.tone = Tone::notable;
    cell.tip = "The plan of the scenario itself";
  }
  return cell;
}

Cell step_time_cell(const FoundPlan& plan, const Unit& unit) {
  Cell cell = number_cell(plan.step_time_s * unit.factor);
  if (!plan.simulated) {
    cell.text.prepend(QStringLiteral("≥ "));
    cell.tip = "A lower bound: the plan was not simulated";
  } else if (plan.interval_s) {
    cell.tip = QString("From %1 to %2 %3, given the uncertainty of the constants")
                   .arg(number_text(plan.interval_s->first * unit.factor),
                        number_text(plan.interval_s->second * unit.factor), unit.name);
  }
  return cell;
}

void add_setting(const PlanFile& file, const std::vector<std::string>& keys, const std::string& key,
                 PlanColumns& columns) {
  const auto setting_of = [&file, key](std::size_t plan) -> const PlanSetting* {
    const auto found = file.plans[plan].settings.find(key);
    return found == file.plans[plan].settings.end() ? nullptr : &found->second;
  };
  bool numbers = true;
  for (std::size_t i = 0; i < file.plans.size(); ++i)
    numbers = numbers && (setting_of(i) == nullptr || setting_of(i)->number);
  columns.push_back({{QString::fromStdString(short_key(keys, key)), QString::fromStdString(key), numbers},
                     [setting_of, numbers](std::size_t plan) {
                       const PlanSetting* setting = setting_of(plan);
                       if (setting == nullptr) return Cell{};
                       Cell cell = text_cell(QString::fromStdString(setting->text));
                       if (numbers) cell.number = *setting->number;
                       return cell;
                     }});
}

void add_figure(const PlanFile& file, PlanFigure figure, PlanColumns& columns) {
  const Unit unit = unit_of(file, figure);
  const char* tip = figure == PlanFigure::memory ? "Memory of the fullest device"
                    : figure == PlanFigure::mfu  ? "Model FLOPs as a share of the devices' peak"
                                                 : "";
  columns.push_back({{title_of(file, figure), tip}, [&file, figure, unit](std::size_t plan) {
                       if (figure == PlanFigure::step_time) return step_time_cell(file.plans[plan], unit);
                       Cell cell = number_cell(value_of(file.plans[plan], figure) * unit.factor);
                       if (figure == PlanFigure::memory && !file.plans[plan].fits) cell.tone = Tone::notable;
                       return cell;
                     }});
}

void add_states(const PlanFile& file, PlanColumns& columns) {
  columns.push_back(
      {{"fits", "Whether the plan fits into the devices' memory", false}, [&file](std::size_t plan) {
         Cell cell = yes_cell(file.plans[plan].fits);
         if (!file.plans[plan].fits) cell.tone = Tone::notable;
         return cell;
       }});
  columns.push_back(
      {{"basis", "Whether the time was simulated or is only a lower bound", false},
       [&file](std::size_t plan) { return text_cell(file.plans[plan].simulated ? "simulation" : "bound"); }});
  columns.push_back({{"Pareto", "Whether no other plan is better in every objective", false},
                     [&file](std::size_t plan) { return yes_cell(file.plans[plan].pareto); }});
  columns.push_back({{"distinct", "Whether the difference from the best plan exceeds the uncertainty", false},
                     [&file](std::size_t plan) {
                       const FoundPlan& of = file.plans[plan];
                       return of.origin == FoundPlan::Origin::too_large ? Cell{}
                                                                        : yes_cell(!of.indistinguishable);
                     }});
  columns.push_back(
      {{"why", "Where the time goes, or what would make it fit", false},
       [&file](std::size_t plan) { return text_cell(QString::fromStdString(file.plans[plan].why)); }});
}

// Returns the columns from left to right: the plan, its step time, its settings, and then its other figures.
PlanColumns columns_of(const PlanFile& file) {
  PlanColumns columns;
  columns.push_back(
      {{"plan", "Ranked plans, the scenario's own, and plans that are too large for the devices", false},
       [&file](std::size_t plan) { return label_cell(file, plan); }});
  add_figure(file, PlanFigure::step_time, columns);
  columns.push_back({{"slower (%)", "Relative to the best plan, by the objective of the search"},
                     [&file](std::size_t plan) { return number_cell(100 * file.plans[plan].slower, 3); }});
  const std::vector<std::string> keys = varying_settings(file);
  for (const std::string& key : keys) add_setting(file, keys, key, columns);
  std::set<double> devices;
  for (const FoundPlan& plan : file.plans)
    if (std::isfinite(plan.devices)) devices.insert(plan.devices);
  if (devices.size() > 1)
    columns.push_back(
        {{"devices", {}}, [&file](std::size_t plan) { return count_cell(file.plans[plan].devices); }});
  for (const PlanFigure figure : known_figures(file))
    if (figure != PlanFigure::step_time) add_figure(file, figure, columns);
  add_states(file, columns);
  return columns;
}

struct Term {
  QString word;
  std::size_t column = 0;
  QString comparison;  // empty: search for the word
  double number = 0;
};

bool holds(double value, const QString& comparison, double number) {
  if (!std::isfinite(value)) return false;
  if (comparison == "<") return value < number;
  if (comparison == "<=") return value <= number;
  if (comparison == ">") return value > number;
  if (comparison == ">=") return value >= number;
  return value == number;
}

Term term_of(const QString& word, const TableData& rows) {
  static const QRegularExpression kComparison(R"(^([^<>=]+)(<=|>=|<|>|=)([-+0-9.eE]+)$)");
  const QRegularExpressionMatch match = kComparison.match(word);
  bool is_number = false;
  const double number = match.captured(3).toDouble(&is_number);
  for (std::size_t c = 0; is_number && c < rows.columns.size(); ++c) {
    QString title = rows.columns[c].title;
    title.remove(' ');
    if (rows.columns[c].numbers && title.startsWith(match.captured(1), Qt::CaseInsensitive))
      return {word, c, match.captured(2), number};
  }
  return {word, 0, {}, 0};
}

bool matches(const std::vector<Cell>& row, const Term& term) {
  if (!term.comparison.isEmpty()) return holds(row[term.column].number, term.comparison, term.number);
  return std::any_of(row.begin(), row.end(),
                     [&](const Cell& cell) { return cell.text.contains(term.word, Qt::CaseInsensitive); });
}

}  // namespace

TableData rows_of(const PlanFile& file) {
  TableData data;
  const PlanColumns columns = columns_of(file);
  for (const PlanColumn& column : columns) data.columns.push_back(column.column);
  for (std::size_t i = 0; i < file.plans.size(); ++i) {
    std::vector<Cell>& row = data.rows.emplace_back();
    for (const PlanColumn& column : columns) row.push_back(column.cell(i));
  }
  return data;
}

std::vector<bool> matching(const PlanFile& file, const TableData& rows, const PlanFilter& filter) {
  std::vector<Term> terms;
  for (const QString& word : filter.text.split(' ', Qt::SkipEmptyParts)) terms.push_back(term_of(word, rows));
  std::vector<bool> result(file.plans.size());
  for (std::size_t i = 0; i < file.plans.size(); ++i) {
    const FoundPlan& plan = file.plans[i];
    result[i] = (!filter.fits || plan.fits) && (!filter.simulated || plan.simulated) &&
                (!filter.pareto || plan.pareto) &&
                std::all_of(terms.begin(), terms.end(),
                            [&](const Term& term) { return matches(rows.rows[i], term); });
  }
  return result;
}

}  // namespace rehearse::gui
