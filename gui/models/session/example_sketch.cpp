#include "gui/models/session/example_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/models/comparison/figures.hpp"
#include "gui/models/tables/result_file.hpp"
#include "gui/models/trace/trace_file.hpp"

namespace rehearse::gui {

namespace {

constexpr std::size_t kManyRanks = 4;  // with at least as many ranks, each gets one line
constexpr std::size_t kMostLines = 48;
constexpr double kGap = 0.08;  // between two runs, as a fraction of the height
constexpr double kNarrowest = 0.004;
constexpr double kMargin = 0.06;  // around points
constexpr std::size_t kMostBars = 20'000;

// Selects the rows to draw: all rows if there are few ranks, else one summary row per rank, which in
// Rehearse's traces contains the passes.
std::vector<const Row*> lines_of(const Timeline& timeline) {
  std::vector<const Row*> lines;
  const bool many = timeline.processes.size() >= kManyRanks;
  for (const Process& process : timeline.processes) {
    if (!process.device || lines.size() >= kMostLines) continue;
    if (many) {
      if (process.summary_row >= 0) lines.push_back(&timeline.rows[process.summary_row]);
      continue;
    }
    for (int track = process.first_track; track < process.last_track; ++track)
      for (int row = timeline.tracks[track].first_row; row < timeline.tracks[track].last_row; ++row)
        lines.push_back(&timeline.rows[row]);
  }
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  return lines;
}

void add_lines(const Timeline& timeline, double length_ns, double top, double height, Sketch& sketch) {
  TimeRange step = figures_of(timeline).step;
  if (step.length() <= 0) step = {timeline.begin, timeline.end};
  const SpanColumns& spans = timeline.spans;
  const std::vector<const Row*> lines = lines_of(timeline);
  const double line_height = height / static_cast<double>(std::max<std::size_t>(lines.size(), 1));
  double y = top;
  for (const Row* row : lines) {
    for (SpanId span = timeline.first_after(*row, step.begin); span < row->last; ++span) {
      if (spans.begin[span] >= step.end || sketch.bars.size() >= kMostBars) break;
      const double from = std::max(0.0, static_cast<double>(spans.begin[span] - step.begin) / length_ns);
      const double to = static_cast<double>(std::min(spans.end[span], step.end) - step.begin) / length_ns;
      sketch.bars.push_back({QRectF(from, y, std::max(kNarrowest, to - from), line_height), spans.kind[span],
                             spans.pass[span]});
    }
    y += line_height;
  }
}

void sketch_traces(const QStringList& files, Sketch& sketch) {
  std::vector<Timeline> timelines;
  double longest = 1;
  for (const QString& file : files) {
    Progress progress;
    timelines.push_back(read_timeline(file.toStdString(), progress));
    const TimeRange step = figures_of(timelines.back()).step;
    const Time length = step.length() > 0 ? step.length() : timelines.back().end - timelines.back().begin;
    longest = std::max(longest, static_cast<double>(length));
  }
  const double share = 1.0 / static_cast<double>(timelines.size());
  const double gap = timelines.size() > 1 ? kGap : 0;
  for (std::size_t t = 0; t < timelines.size(); ++t)
    add_lines(timelines[t], longest, static_cast<double>(t) * share + (t > 0 ? gap / 2 : 0), share - gap / 2,
              sketch);
}

// Scales the curves into the square, with both axes logarithmic; drops points that are not positive.
void fit(std::vector<Sketch::Curve>& curves) {
  QPointF least(std::numeric_limits<double>::max(), std::numeric_limits<double>::max());
  QPointF most(std::numeric_limits<double>::lowest(), std::numeric_limits<double>::lowest());
  for (Sketch::Curve& curve : curves) {
    std::vector<QPointF> kept;
    for (const QPointF& point : curve.points) {
      if (!(point.x() > 0 && point.y() > 0)) continue;
      kept.emplace_back(std::log(point.x()), std::log(point.y()));
      least = {std::min(least.x(), kept.back().x()), std::min(least.y(), kept.back().y())};
      most = {std::max(most.x(), kept.back().x()), std::max(most.y(), kept.back().y())};
    }
    curve.points = std::move(kept);
  }
  const auto placed = [](double value, double from, double to) {
    return kMargin + (1 - 2 * kMargin) * (to > from ? (value - from) / (to - from) : 0.5);
  };
  for (Sketch::Curve& curve : curves)
    for (QPointF& point : curve.points)
      point = {placed(point.x(), least.x(), most.x()), 1 - placed(point.y(), least.y(), most.y())};
}

Sketch sketch_results(const QString& file) {
  Progress progress;
  const ResultFile results = read_results(file.toStdString(), progress);
  Sketch sketch;
  if (const auto* sweep = std::get_if<ReadSweep>(&results)) {
    for (const Curve& curve : curves_of(sweep->sweep, "devices", SweepFigure::samples)) {
      Sketch::Curve points{{}, static_cast<int>(sketch.curves.size()), true};
      for (const CurvePoint& point : curve.points) points.points.emplace_back(point.x, point.y);
      sketch.curves.push_back(std::move(points));
    }
  } else if (const auto* plans = std::get_if<ReadPlans>(&results)) {
    Sketch::Curve others{{}, -1, false}, best{{}, 0, true};
    for (const FoundPlan& plan : plans->plans.plans)
      (plan.pareto ? best : others).points.emplace_back(plan.step_time_s, plan.memory_bytes);
    std::sort(best.points.begin(), best.points.end(),
              [](const QPointF& a, const QPointF& b) { return a.x() < b.x(); });
    sketch.curves = {others, best};
  } else {
    Sketch::Curve equal{{}, -1, true}, points{{}, 0, false};
    double least = std::numeric_limits<double>::max(), most = 0;
    for (const AccuracyPoint& point : std::get<AccuracyTable>(results).points) {
      points.points.emplace_back(point.measured_s, point.predicted_s);
      least = std::min({least, point.measured_s, point.predicted_s});
      most = std::max({most, point.measured_s, point.predicted_s});
    }
    equal.points = {{least, least}, {most, most}};
    sketch.curves = {equal, points};
  }
  fit(sketch.curves);
  return sketch;
}

}  // namespace

Sketch sketch_of(const QStringList& files) {
  if (files.isEmpty()) return {};
  Sketch sketch;
  try {
    const bool results = files.front().endsWith(".csv") || is_plan_file(files.front().toStdString());
    if (results) return sketch_results(files.front());
    sketch_traces(files, sketch);
  } catch (const std::exception&) {  // the card then has text but no picture
    return {};
  }
  return sketch;
}

}  // namespace rehearse::gui
