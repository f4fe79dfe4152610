#include "gui/models/tables/sweep_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/text/error.hpp"
#include "models/text/number_in.hpp"
#include "models/text/text.hpp"
#include "models/text/toml_value.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

// Shortens "strategy.all_reduce" to "all_reduce" if no other key has the same ending.
std::string short_key(const SweepTable& table, const std::string& key) {
  const std::string end = key.substr(key.rfind('.') + 1);
  const auto same = std::count_if(table.varied.begin(), table.varied.end(), [&](const std::string& other) {
    return other.substr(other.rfind('.') + 1) == end;
  });
  return same > 1 || end == "devices" ? key : end;
}

double figure_of(const SweepPoint& point, const SweepPoint& first, SweepFigure figure) {
  const double per_device = point.samples_per_s / point.devices;
  switch (figure) {
    case SweepFigure::step_time:
      return point.step_time_s;
    case SweepFigure::samples:
      return point.samples_per_s;
    case SweepFigure::tokens:
      return point.tokens_per_s;
    case SweepFigure::mfu:
      return 100 * point.mfu;
    case SweepFigure::samples_per_device:
      return per_device;
    case SweepFigure::speed_up:
      return point.samples_per_s / first.samples_per_s;
    case SweepFigure::efficiency:
      return 100 * per_device / (first.samples_per_s / first.devices);
  }
  return 0;
}

}  // namespace

std::optional<double> SweepTable::value(const SweepPoint& point, const std::string& axis) const {
  if (axis == "devices") return point.devices > 0 ? std::optional(point.devices) : std::nullopt;
  const auto it = std::find(varied.begin(), varied.end(), axis);
  if (it == varied.end()) return std::nullopt;
  const std::string& written = point.varied[static_cast<std::size_t>(it - varied.begin())];
  const std::vector<std::string>& known = words_of(axis);
  if (known.empty()) return finite_number_in(written);
  const auto word = std::find(known.begin(), known.end(), written);
  return word == known.end() ? std::nullopt : std::optional(static_cast<double>(word - known.begin() + 1));
}

const std::vector<std::string>& SweepTable::words_of(const std::string& axis) const {
  static const std::vector<std::string> none;
  const auto found = words.find(axis);
  return found == words.end() ? none : found->second;
}

void SweepTable::read_words() {
  words.clear();
  for (std::size_t k = 0; k < varied.size(); ++k) {
    const bool numeric = std::all_of(points.begin(), points.end(), [&](const SweepPoint& point) {
      return finite_number_in(point.varied[k]).has_value();
    });
    if (numeric) continue;
    std::set<std::string> known;
    std::vector<std::string>& all = words[varied[k]];
    for (const SweepPoint& point : points)
      if (known.insert(point.varied[k]).second) all.push_back(point.varied[k]);
  }
}

std::vector<std::string> SweepTable::axes() const {
  std::vector<std::string> all = numeric_axes();
  for (const auto& [key, of_key] : words) all.push_back(key);
  return all;
}

std::vector<std::string> SweepTable::numeric_axes() const {
  std::vector<std::string> axes;
  std::set<double> devices;
  for (const SweepPoint& point : points)
    if (point.ok()) devices.insert(point.devices);
  if (devices.size() > 1) axes.emplace_back("devices");
  for (const std::string& key : varied) {
    if (!words_of(key).empty()) continue;
    std::set<double> values;
    const bool numeric = std::all_of(points.begin(), points.end(), [&](const SweepPoint& point) {
      const std::optional<double> number = value(point, key);
      if (number) values.insert(*number);
      return number.has_value();
    });
    if (numeric && !values.empty()) axes.push_back(key);
  }
  return axes;
}

SweepTable sweep_of(const CsvFile& file) {
  if (kind_of(file) != CsvKind::sweep)
    throw InputError(
        {file.name, 1, 0},
        "does not contain a sweep; allowed: the output of `rehearse sweep --out FILE.csv`, with the "
        "columns point, step_time_s, samples_per_s, devices and status");
  SweepTable table;
  table.name = file.name;
  table.problems = file.problems;
  const int first_varied = file.column("point") + 1, first_figure = file.column("step_time_s");
  for (int column = first_varied; column < first_figure; ++column)
    table.varied.push_back(file.header[static_cast<std::size_t>(column)]);
  for (const CsvRow& row : file.rows) {
    const auto text = [&](const char* name) {
      const int column = file.column(name);
      return column < 0 ? std::string() : row.fields[static_cast<std::size_t>(column)];
    };
    SweepPoint point;
    point.line = row.line;
    point.number = text("point");
    point.status = text("status");
    point.error = text("error");
    point.fits = text("fits") != "false";
    for (int column = first_varied; column < first_figure; ++column)
      point.varied.push_back(row.fields[static_cast<std::size_t>(column)]);
    if (point.ok()) {
      const std::vector<std::pair<const char*, double SweepPoint::*>> figures = {
          {"step_time_s", &SweepPoint::step_time_s},
          {"samples_per_s", &SweepPoint::samples_per_s},
          {"devices", &SweepPoint::devices},
          {"tokens_per_s", &SweepPoint::tokens_per_s},
          {"mfu", &SweepPoint::mfu},
          {"memory_bytes", &SweepPoint::memory_bytes}};
      std::string wrong;
      for (std::size_t i = 0; i < figures.size() && wrong.empty(); ++i) {
        const std::string said = text(figures[i].first);
        const std::optional<double> number = finite_number_in(said);
        const bool needed = i < 3;  // required for any curve
        if (number && (*number > 0 || !needed))
          point.*figures[i].second = *number;
        else if (needed || !said.empty())
          wrong = fmt::format("line {}: {} is {}; allowed: a number{}", row.line, figures[i].first,
                              in_quotes(said), needed ? " above 0" : "");
      }
      if (!wrong.empty()) {
        table.problems.push_back(wrong);
        continue;
      }
    } else if (point.status != "refused" && point.status != "failed") {
      table.problems.push_back(fmt::format("line {}: its status is {}; allowed: ok, refused, failed",
                                           row.line, in_quotes(point.status)));
      continue;
    }
    table.points.push_back(std::move(point));
  }
  std::vector<std::pair<double, std::size_t>> by_number;
  for (std::size_t i = 0; i < table.points.size(); ++i)
    by_number.emplace_back(finite_number_in(table.points[i].number).value_or(HUGE_VAL), i);
  std::sort(by_number.begin(), by_number.end());
  std::vector<SweepPoint> points;
  for (const auto& [number, i] : by_number) points.push_back(std::move(table.points[i]));
  table.points = std::move(points);
  table.read_words();
  return table;
}

std::vector<Curve> curves_of(const SweepTable& table, const std::string& axis, SweepFigure figure) {
  std::vector<Curve> curves;
  std::map<std::vector<std::string>, std::size_t> number_of;
  // If the axis is "devices", keys that determine the number of devices do not separate curves: each of their
  // values occurs with only one number of devices.
  std::vector<bool> apart(table.varied.size(), true);
  for (std::size_t k = 0; k < table.varied.size(); ++k) {
    if (table.varied[k] == axis) apart[k] = false;
    if (axis != "devices") continue;
    std::map<std::string, std::set<double>> devices_of;
    for (const SweepPoint& point : table.points)
      if (point.ok()) devices_of[point.varied[k]].insert(point.devices);
    std::set<double> all;
    bool one_each = true;
    for (const auto& [value, devices] : devices_of) {
      one_each = one_each && devices.size() == 1;
      all.insert(devices.begin(), devices.end());
    }
    if (one_each && all.size() > 1) apart[k] = false;
  }
  for (std::size_t row = 0; row < table.points.size(); ++row) {
    const SweepPoint& point = table.points[row];
    const std::optional<double> x = table.value(point, axis);
    if (!point.ok() || !x) continue;
    std::vector<std::string> others;
    std::string name;
    for (std::size_t k = 0; k < table.varied.size(); ++k) {
      if (!apart[k]) continue;
      others.push_back(point.varied[k]);
      name += fmt::format("{}{} {}", name.empty() ? "" : ", ", short_key(table, table.varied[k]),
                          point.varied[k]);
    }
    const auto [it, is_new] = number_of.try_emplace(others, curves.size());
    if (is_new) curves.push_back({name, {}});
    curves[it->second].points.push_back({*x, 0, row});
  }
  for (Curve& curve : curves) {
    std::stable_sort(curve.points.begin(), curve.points.end(),
                     [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
    const SweepPoint& first = table.points[curve.points.front().row];
    for (CurvePoint& at : curve.points) at.y = figure_of(table.points[at.row], first, figure);
    // Drops unknown figures; tokens_per_s and mfu can be unknown.
    std::erase_if(curve.points, [](const CurvePoint& at) { return !(at.y > 0); });
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  return curves;
}

std::vector<CurvePoint> ideal_curve(const SweepTable& table, const Curve& curve, SweepFigure figure) {
  std::vector<CurvePoint> ideal;
  if (curve.points.size() < 2) return ideal;
  const SweepPoint& first = table.points[curve.points.front().row];
  const bool same = std::all_of(curve.points.begin(), curve.points.end(), [&](const CurvePoint& at) {
    return table.points[at.row].devices == first.devices;
  });
  if (same) return ideal;
  for (const CurvePoint& at : curve.points) {
    const SweepPoint& point = table.points[at.row];
    SweepPoint would = point;
    const double share = point.devices / first.devices;
    would.samples_per_s = first.samples_per_s * share;
    would.tokens_per_s = first.tokens_per_s * share;
    // Each step trains as many samples as in the actual point.
    would.step_time_s = point.step_time_s * point.samples_per_s / would.samples_per_s;
    would.mfu = first.mfu;
    ideal.push_back({at.x, figure_of(would, first, figure), at.row});
  }
  return ideal;
}

std::string description_of(const SweepTable& table, const SweepPoint& point) {
  std::string text = fmt::format("{} device{}", with_digits(point.devices, 1), point.devices == 1 ? "" : "s");
  for (std::size_t k = 0; k < table.varied.size(); ++k)
    text += fmt::format(", {} {}", short_key(table, table.varied[k]), point.varied[k]);
  text +=
      fmt::format(": {}, {} samples/s", human_time_s(point.step_time_s), with_prefix(point.samples_per_s));
  if (point.mfu > 0) text += ", MFU " + in_percent(point.mfu);
  if (!point.fits) text += "; does not fit into memory";
  return text;
}

std::vector<CurvePoint> course_of(const std::vector<CurvePoint>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<CurvePoint> course;
  const std::size_t stretches = std::max<std::size_t>(1, most / 2);
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / stretches);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / stretches);
    auto [low, high] =
        std::minmax_element(begin, end, [](const CurvePoint& a, const CurvePoint& b) { return a.y < b.y; });
    if (low > high) std::swap(low, high);
    course.push_back(*low);
    if (low != high) course.push_back(*high);
  }
  return course;
}

TableData rows_of(const SweepTable& table) {
  TableData data;
  data.columns.push_back({"point", "Number of the point in the sweep"});
  const std::vector<std::string> numeric = table.numeric_axes();
  for (const std::string& key : table.varied) {
    const bool numbers = std::find(numeric.begin(), numeric.end(), key) != numeric.end();
    data.columns.push_back(
        {QString::fromStdString(short_key(table, key)), QString::fromStdString(key), numbers});
  }
  double longest_s = 0;
  for (const SweepPoint& point : table.points) longest_s = std::max(longest_s, point.step_time_s);
  const Unit time = unit_of_seconds(longest_s);
  data.columns.push_back({"devices", {}});
  data.columns.push_back({"step time (" + time.name + ")", "Time of one training step"});
  data.columns.push_back({"samples/s", {}});
  data.columns.push_back({"tokens/s", {}});
  data.columns.push_back({"MFU (%)", "Model FLOPs as a share of the devices' peak"});
  data.columns.push_back({"memory (GiB)", "Memory of the fullest device"});
  data.columns.push_back({"status", "Whether the point was simulated; if not, why", false});
  for (const SweepPoint& point : table.points) {
    std::vector<Cell>& row = data.rows.emplace_back();
    const auto figure = [&](double value, int digits = 4) {
      row.push_back(point.ok() ? number_cell(value, digits) : Cell{});
    };
    const std::optional<double> number = finite_number_in(point.number);
    row.push_back({QString::fromStdString(point.number), number.value_or(0)});
    for (std::size_t k = 0; k < table.varied.size(); ++k) {
      const std::optional<double> value = finite_number_in(point.varied[k]);
      Cell cell = text_cell(QString::fromStdString(point.varied[k]));
      if (value && data.columns[k + 1].numbers) cell.number = *value;
      row.push_back(cell);
    }
    figure(point.devices, 1);
    figure(point.step_time_s * time.factor);
    figure(point.samples_per_s);
    if (point.tokens_per_s > 0)
      figure(point.tokens_per_s);
    else
      row.push_back({});  // the model has no tokens
    figure(100 * point.mfu, 3);
    figure(point.memory_bytes / 1073741824.0, 3);
    const QString status = QString::fromStdString(point.ok() ? (point.fits ? "ok" : "does not fit")
                                                             : point.status + ": " + point.error);
    row.push_back(text_cell(status));
    if (!point.ok() || !point.fits) row.back().tone = Tone::notable;
  }
  return data;
}

}  // namespace rehearse::gui
