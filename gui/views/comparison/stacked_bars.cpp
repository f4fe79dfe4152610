#include "gui/views/comparison/stacked_bars.hpp"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "gui/views/parts/appearance.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr double kShownShare = 0.001;  // share of the bar; smaller parts are omitted
constexpr int kGap = 6, kSwatch = 11, kEntryGap = 18;

QString text_of(double seconds, double scale_s) {
  return QString::fromStdString(rehearse::TimeScale(scale_s)(seconds));
}
QString percent(double share) {
  return QString::fromStdString(in_percent(share));
}

QColor colour_of_part(const BarPart& part, bool dark) {
  const QColor colour = colour_of(part.kind, part.pass, dark);
  switch (part.shade % 4) {
    case 1:
      return colour.darker(135);
    case 2:
      return colour.lighter(130);
    case 3:
      return colour.darker(175);
    default:
      return colour;
  }
}

void fill(QPainter& painter, const QRectF& box, const BarPart& part, bool dark) {
  const QColor colour = colour_of_part(part, dark);
  painter.fillRect(box, colour);
  const Qt::BrushStyle pattern = pattern_of(part.kind);
  if (pattern == Qt::SolidPattern) return;
  QColor lines = text_on(colour);
  lines.setAlpha(70);
  painter.fillRect(box, QBrush(lines, pattern));
}

// Numbers parts of the same kind and pass, which get different shades of its colour.
void shade(std::vector<BarPart>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i].shade = static_cast<int>(std::count_if(
        parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const BarPart& other) { return other.kind == parts[i].kind && other.pass == parts[i].pass; }));
}

void leave_out_small(std::vector<BarPart>& parts, double whole_s) {
  std::erase_if(parts, [&](const BarPart& part) { return part.seconds < kShownShare * whole_s; });
}

BarPart part_of_path(const std::string& kind, double seconds) {
  static const std::vector<std::tuple<std::string, Kind, Pass>> kKinds = {
      {"forward", Kind::compute, Pass::forward},
      {"backward", Kind::compute, Pass::backward},
      {"backward input", Kind::compute, Pass::backward},
      {"backward weight", Kind::compute, Pass::weights},
      {"optimizer", Kind::compute, Pass::optimizer},
      {"recompute", Kind::compute, Pass::recompute},
      {"compute", Kind::compute, Pass::none},
      {"waiting", Kind::waiting, Pass::none},
      {"data", Kind::data, Pass::none},
      {"checkpoint", Kind::checkpoint, Pass::none},
      {"server work", Kind::host, Pass::none},
      {"fusion cycle", Kind::other, Pass::none}};
  BarPart part{QString::fromStdString(kind), Kind::communication, Pass::none, 0, seconds};
  for (const auto& [name, its_kind, pass] : kKinds)
    if (name == kind) {
      part.kind = its_kind;
      part.pass = pass;
    }
  return part;
}

}  // namespace

Bar breakdown_bar(const RunFigures& figures) {
  Bar bar;
  for (const BreakdownPart& part : figures.breakdown)
    bar.parts.push_back({QString::fromStdString(part.name), part.kind, Pass::none, 0, part.seconds});
  leave_out_small(bar.parts, figures.step_time_s);
  shade(bar.parts);
  return bar;
}

Bar path_bar(const RunFigures& figures) {
  Bar bar;
  double whole_s = 0;
  for (const auto& [kind, seconds] : figures.path_by_kind) {
    bar.parts.push_back(part_of_path(kind, seconds));
    whole_s += seconds;
  }
  leave_out_small(bar.parts, whole_s);
  shade(bar.parts);
  return bar;
}

std::vector<Bar> breakdown_bars(const Runs& runs, const std::vector<std::string>& names) {
  const std::vector<ComparedPart> parts = compared_breakdowns(runs);
  double longest_s = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    double sum = 0;
    for (const ComparedPart& part : parts) sum += part.seconds[i];
    longest_s = std::max(longest_s, sum);
  }
  std::vector<Bar> bars(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    bars[i].name = QString::fromStdString(names[i]);
    for (const ComparedPart& part : parts)
      if (*std::max_element(part.seconds.begin(), part.seconds.end()) >= kShownShare * longest_s)
        bars[i].parts.push_back(
            {QString::fromStdString(part.name), part.kind, Pass::none, 0, part.seconds[i]});
    shade(bars[i].parts);
  }
  return bars;
}

StackedBars::StackedBars(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void StackedBars::set(std::vector<Bar> bars) {
  bars_ = std::move(bars);
  QString description;
  for (const Bar& bar : bars_) {
    const double whole_s = total_of(bar);
    if (whole_s <= 0) continue;
    description += (description.isEmpty() ? "" : "; ") + (bar.name.isEmpty() ? QString() : bar.name + ": ");
    bool first = true;
    for (const BarPart& part : bar.parts) {
      if (part.seconds <= 0) continue;
      description += (first ? "" : ", ") + part.name + " " + percent(part.seconds / whole_s);
      first = false;
    }
  }
  setAccessibleDescription(description);
  updateGeometry();
  update();
}

double StackedBars::total_of(const Bar& bar) const {
  double sum = 0;
  for (const BarPart& part : bar.parts) sum += part.seconds;
  return sum;
}

StackedBars::Layout StackedBars::layout_for(int width) const {
  Layout layout;
  const QFontMetrics metrics = fontMetrics();
  layout.bar_height = metrics.height() + (bars_.size() > 1 ? 8 : 12);
  double longest_s = 0;
  for (const Bar& bar : bars_) longest_s = std::max(longest_s, total_of(bar));
  if (longest_s <= 0) return layout;
  if (bars_.size() > 1)
    for (const Bar& bar : bars_) {
      layout.names_width =
          std::max<double>(layout.names_width, std::min(metrics.horizontalAdvance(bar.name), width * 3 / 10));
      layout.totals_width =
          std::max<double>(layout.totals_width, metrics.horizontalAdvance(text_of(total_of(bar), longest_s)));
    }
  const double left = layout.names_width > 0 ? layout.names_width + kGap : 0;
  const double room =
      std::max(20.0, width - left - (layout.totals_width > 0 ? layout.totals_width + kGap : 0));
  double y = 0;
  for (std::size_t b = 0; b < bars_.size(); ++b) {
    double at_s = 0;
    for (std::size_t p = 0; p < bars_[b].parts.size(); ++p) {
      const double begin = left + room * at_s / longest_s;
      at_s += bars_[b].parts[p].seconds;
      const double end = left + room * at_s / longest_s;
      if (end > begin) layout.segments.push_back({b, p, {begin, y, end - begin, layout.bar_height}});
    }
    y += layout.bar_height + 4;
  }

  // Lay out the legend; with a single bar, entries include the times.
  y += 4;
  double x = 0;
  for (std::size_t p = 0; p < bars_.front().parts.size(); ++p) {
    const BarPart& part = bars_.front().parts[p];
    LegendEntry entry{part, {}, part.name};
    if (bars_.size() == 1)
      entry.text +=
          QString("  %1  %2")
              .arg(text_of(part.seconds, longest_s), percent(part.seconds / total_of(bars_.front())));
    const double length = kSwatch + 5 + metrics.horizontalAdvance(entry.text);
    if (x > 0 && x + length > width) {
      x = 0;
      y += metrics.height() + 3;
    }
    entry.box = {x, y, length, static_cast<double>(metrics.height())};
    x += length + kEntryGap;
    layout.legend.push_back(std::move(entry));
  }
  layout.height = y + metrics.height() + 2;
  return layout;
}

int StackedBars::heightForWidth(int width) const {
  return static_cast<int>(std::ceil(layout_for(width).height));
}
QSize StackedBars::sizeHint() const {
  return {420, heightForWidth(420)};
}
QSize StackedBars::minimumSizeHint() const {
  return {220, fontMetrics().height()};  // heightForWidth() gives the height for the actual width
}

void StackedBars::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Layout layout = layout_for(width());
  const bool dark = is_dark(palette());
  const QFontMetrics metrics = fontMetrics();
  double longest_s = 0;
  for (const Bar& bar : bars_) longest_s = std::max(longest_s, total_of(bar));

  for (const Segment& segment : layout.segments) {
    const BarPart& part = bars_[segment.bar].parts[segment.part];
    QRectF box = segment.box;
    if (box.width() > 3) box.adjust(0, 0, -1, 0);  // leaves a gap before the next part
    fill(painter, box, part, dark);
    const double whole_s = total_of(bars_[segment.bar]);
    const QString share = percent(part.seconds / whole_s);
    const QStringList texts = {part.name + "  " + share,
                               bars_.size() == 1 ? share : text_of(part.seconds, longest_s) + "  " + share,
                               share};
    for (const QString& text : bars_.size() == 1 ? texts : texts.mid(1)) {
      const double length = metrics.horizontalAdvance(text);
      if (length + 8 > box.width()) continue;
      const QColor ground = colour_of_part(part, dark);
      QRectF plate(0, 0, length + 6, metrics.height());
      plate.moveCenter(box.center());
      if (pattern_of(part.kind) != Qt::SolidPattern) painter.fillRect(plate, ground);
      painter.setPen(text_on(ground));
      painter.drawText(box, Qt::AlignCenter, text);
      break;
    }
  }
  if (bars_.size() > 1) {
    painter.setPen(palette().color(QPalette::WindowText));
    for (std::size_t b = 0; b < bars_.size(); ++b) {
      const double y = static_cast<double>(b) * (layout.bar_height + 4);
      painter.drawText(
          QRectF(0, y, layout.names_width, layout.bar_height), Qt::AlignVCenter | Qt::AlignRight,
          metrics.elidedText(bars_[b].name, Qt::ElideMiddle, static_cast<int>(layout.names_width)));
      double end = layout.names_width + kGap;
      for (const Segment& segment : layout.segments)
        if (segment.bar == b) end = std::max(end, segment.box.right());
      if (total_of(bars_[b]) > 0)
        painter.drawText(QRectF(end + kGap, y, layout.totals_width + 2, layout.bar_height),
                         Qt::AlignVCenter | Qt::AlignLeft, text_of(total_of(bars_[b]), longest_s));
    }
  }
  for (const LegendEntry& entry : layout.legend) {
    const QRectF swatch(entry.box.left(), entry.box.center().y() - kSwatch / 2.0, kSwatch, kSwatch);
    fill(painter, swatch, entry.part, dark);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(entry.box.adjusted(kSwatch + 5, 0, 2, 0), Qt::AlignVCenter | Qt::AlignLeft, entry.text);
  }
}

bool StackedBars::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  for (const Segment& segment : layout_for(width()).segments) {
    if (!segment.box.contains(help->pos())) continue;
    const Bar& bar = bars_[segment.bar];
    const BarPart& part = bar.parts[segment.part];
    const double whole_s = total_of(bar);
    QToolTip::showText(
        help->globalPos(),
        QString("%1%2: %3, %4 of %5")
            .arg(bar.name.isEmpty() ? QString() : bar.name + ": ", part.name, text_of(part.seconds, whole_s),
                 percent(part.seconds / whole_s), text_of(whole_s, whole_s)),
        this);
    return true;
  }
  QToolTip::hideText();
  event->ignore();
  return true;
}

}  // namespace rehearse::gui
