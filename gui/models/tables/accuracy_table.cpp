#include "gui/models/tables/accuracy_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "models/text/error.hpp"
#include "models/text/number_in.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/report/comparison.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

// Returns the settings that a prediction and a measurement must share. Empty: the scenario is not known.
std::string settings_of(const Run& run) {
  if (!run.judged) return run.scenario_text;
  std::string settings;
  for (const auto& [key, value] : run.judged->run.scenario.settings)
    if (!key.starts_with("run.") && !key.starts_with("simulation.")) settings += key + " = " + value + "\n";
  return settings;
}

AccuracyPoint point_of(const Run& measured, const Run& predicted) {
  AccuracyPoint point;
  point.run = measured.name;
  point.measured_s = measured.figures.step_time_s;
  point.predicted_s = predicted.figures.step_time_s;
  if (measured.judged && predicted.judged) {
    const Judged& judged = *measured.judged;
    point.topology = judged.run.scenario.cluster->title;
    point.strategy = strategy_line(judged.run.scenario, *judged.run.plan.schedule);
    point.ranks = judged.run.plan.schedule->ranks();
    try {
      const StepTimes times = step_times(judged.run.trace, 0, judged.run.measured->warmup_steps);
      point.least_s = times.least_s;
      point.most_s = times.most_s;
    } catch (const RunError&) {  // the step time is known even without its range
    }
    point.sentence =
        difference_sentence(judged.result(), predicted.judged->result(), "the measurement", "The prediction");
  }
  return point;
}

// `text` returns the field in the named column, or an empty string if there is no such column.
template <class Text>
AccuracyPoint recorded_point(const Text& text) {
  AccuracyPoint point;
  point.run = text("run");
  point.topology = text("topology");
  point.strategy = text("strategy");
  point.sentence = text("sentence");
  point.ranks = static_cast<int>(std::clamp(finite_number_in(text("ranks")).value_or(0), 0.0, 1e9));
  point.least_s = finite_number_in(text("least_s")).value_or(0);
  point.most_s = finite_number_in(text("most_s")).value_or(0);
  return point;
}

template <class Text>
AccuracyPoint published_point(const Text& text) {
  AccuracyPoint point;
  point.run = text("id");
  point.table = text("table");
  point.topology = text("group");
  point.ranks = static_cast<int>(std::clamp(finite_number_in(text("devices")).value_or(0), 0.0, 1e9));
  point.sentence = text("source");
  if (const std::string note = text("note"); !note.empty()) point.sentence += "; " + note;
  return point;
}

}  // namespace

AccuracyTable accuracy_of(const std::vector<std::shared_ptr<const Run>>& runs) {
  AccuracyTable table;
  for (const auto& measured : runs) {
    if (measured->source != Run::Source::measured || !(measured->figures.step_time_s > 0)) continue;
    const std::string settings = settings_of(*measured);
    for (const auto& predicted : runs)
      if (predicted->source == Run::Source::predicted && predicted->figures.step_time_s > 0 &&
          !settings.empty() && settings_of(*predicted) == settings)
        table.points.push_back(point_of(*measured, *predicted));
  }
  return table;
}

AccuracyTable accuracy_of(const CsvFile& file) {
  if (kind_of(file) != CsvKind::validation)
    throw InputError(
        {file.name, 1, 0},
        "does not compare predictions with measurements; allowed: the output of `rehearse validate "
        "[RUN|FOLDER|TABLE]... --format csv`, with the columns run or id, measured_step_s "
        "and predicted_step_s");
  const bool published = file.column("run") < 0;
  AccuracyTable table;
  table.problems = file.problems;
  int without_time = 0;
  for (const CsvRow& row : file.rows) {
    const auto text = [&](const char* name) {
      const int column = file.column(name);
      return column < 0 ? std::string() : row.fields[static_cast<std::size_t>(column)];
    };
    // A published measurement can also be only an efficiency or a memory figure.
    if (published && text("measured_step_s").empty()) {
      ++without_time;
      continue;
    }
    AccuracyPoint point = published ? published_point(text) : recorded_point(text);
    bool good = true;
    for (const auto& [name, figure] : {std::pair("measured_step_s", &AccuracyPoint::measured_s),
                                       std::pair("predicted_step_s", &AccuracyPoint::predicted_s)}) {
      const std::optional<double> number = finite_number_in(text(name));
      if (number && *number > 0) {
        point.*figure = *number;
        continue;
      }
      table.problems.push_back(
          fmt::format("line {}: {} is {}; allowed: a number above 0", row.line, name, in_quotes(text(name))));
      good = false;
      break;
    }
    if (good) table.points.push_back(std::move(point));
  }
  if (without_time > 0)
    table.problems.push_back(fmt::format("{} of {} without a measured time", counted(without_time, "row"),
                                         counted(static_cast<double>(file.rows.size()), "row")));
  return table;
}

Errors errors_of(const std::vector<AccuracyPoint>& points) {
  Errors errors;
  std::vector<double> absolute;
  for (std::size_t i = 0; i < points.size(); ++i) {
    absolute.push_back(std::abs(points[i].error()));
    if (absolute.back() > std::abs(errors.worst)) {
      errors.worst = points[i].error();
      errors.worst_at = i;
    }
  }
  if (absolute.empty()) return errors;
  std::sort(absolute.begin(), absolute.end());
  const std::size_t half = absolute.size() / 2;
  errors.median = absolute.size() % 2 == 1 ? absolute[half] : (absolute[half - 1] + absolute[half]) / 2;
  return errors;
}

std::string summary_of(const std::vector<AccuracyPoint>& points) {
  if (points.empty()) return "";
  const Errors errors = errors_of(points);
  const std::string worst = signed_percent_text(errors.worst).toStdString();
  if (points.size() == 1) return fmt::format("1 run: error {} ({}).", worst, points.front().run);
  std::set<std::string> tables;
  for (const AccuracyPoint& point : points) tables.insert(point.table);
  const auto number = static_cast<double>(points.size());
  const std::string of = tables.size() == 1 && tables.begin()->empty()
                             ? counted(number, "run")
                             : fmt::format("{} in {}", counted(number, "measurement"),
                                           counted(static_cast<double>(tables.size()), "table"));
  return fmt::format("{}: median error {}, worst {} ({}).", of, in_percent(errors.median), worst,
                     points[errors.worst_at].run);
}

TableData rows_of(const std::vector<AccuracyPoint>& points) {
  double longest_s = 0;
  for (const AccuracyPoint& point : points)
    longest_s = std::max({longest_s, point.measured_s, point.predicted_s});
  const Unit time = unit_of_seconds(longest_s);
  const auto any = [&](std::string AccuracyPoint::*known) {
    return std::any_of(points.begin(), points.end(),
                       [&](const AccuracyPoint& p) { return !(p.*known).empty(); });
  };
  const bool published = any(&AccuracyPoint::table), planned = !published || any(&AccuracyPoint::strategy);
  TableData data;
  data.columns = {{"run", {}, false},
                  {"error (%)", "Predicted divided by measured, minus 1"},
                  {"measured (" + time.name + ")", "Median step time of the measured steps"},
                  {"predicted (" + time.name + ")", "Step time"},
                  {"ranks", {}}};
  if (published) data.columns.push_back({"table", "Table of published measurements", false});
  data.columns.push_back({published ? "group" : "topology", {}, false});
  if (planned) data.columns.push_back({"strategy", {}, false});
  for (const AccuracyPoint& point : points) {
    const auto text = [](const std::string& of) { return text_cell(QString::fromStdString(of)); };
    Cell ranks = point.ranks > 0 ? count_cell(point.ranks) : Cell{};
    Cell error{signed_percent_text(point.error()).chopped(2), point.error()};
    error.tip = QString::fromStdString(point.sentence);
    if (std::abs(point.error()) > 0.1) error.tone = Tone::notable;
    std::vector<Cell> row = {text(point.run), error, number_cell(point.measured_s * time.factor),
                             number_cell(point.predicted_s * time.factor), ranks};
    if (published) row.push_back(text(point.table));
    row.push_back(text(point.topology));
    if (planned) row.push_back(text(point.strategy));
    data.rows.push_back(std::move(row));
  }
  return data;
}

}  // namespace rehearse::gui
