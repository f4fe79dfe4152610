#include "gui/views/timeline/timeline_legend.hpp"

#include <QPainter>

#include "gui/models/tracks/area_totals.hpp"
#include "gui/views/parts/appearance.hpp"
#include "gui/views/timeline/row_painter.hpp"

namespace rehearse::gui {

namespace {

constexpr int kBeside = 8;

QString percent_text(double share) {
  if (share > 0 && share < 0.0005) return QStringLiteral("< 0.1");
  return QString::number(100 * share, 'f', 1);
}

}  // namespace

TimelineLegend::TimelineLegend(TimelineScene& scene, QWidget* parent) : QWidget(parent), scene_(scene) {
  setAccessibleName(tr("Legend"));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  const auto again = [this] {
    setToolTip(path_text());
    updateGeometry();
    update();
  };
  connect(&scene_, &TimelineScene::lines_changed, this, again);
  connect(&scene_, &TimelineScene::content_changed, this, again);
  connect(&scene_.state(), &ViewState::marks_changed, this, again);
  connect(&scene_.session(), &Session::current_changed, this, again);
}

QSize TimelineLegend::sizeHint() const {
  const int line = fontMetrics().height() + 6;
  return {100, static_cast<int>(1 + path_lines().size()) * line};
}

void TimelineLegend::resizeEvent(QResizeEvent* event) {
  if (event->size().width() != event->oldSize().width() && !path_text().isEmpty()) updateGeometry();
}

QStringList TimelineLegend::path_lines() const {
  QStringList lines;
  const int room = width() - 2 * kBeside - fontMetrics().ascent() - 9;
  // Break the text between its parts.
  for (const QString& part : path_text().split(QStringLiteral(", "))) {
    if (!lines.isEmpty() &&
        fontMetrics().horizontalAdvance(lines.back() + QStringLiteral(", ") + part) <= room)
      lines.back() += QStringLiteral(", ") + part;
    else
      lines << part;
  }
  if (lines == QStringList{QString()}) lines.clear();
  return lines;
}

QString TimelineLegend::path_text() const {
  if (!scene_.state().shows_critical_path()) return {};
  const auto run = scene_.session().current();
  if (!run) return {};
  if (run->figures.path_by_kind.empty())
    return tr("Critical path of %1: unknown").arg(QString::fromStdString(run->name));
  double sum = 0;
  for (const auto& [kind, seconds] : run->figures.path_by_kind) sum += seconds;
  QStringList parts;
  for (const auto& [kind, seconds] : run->figures.path_by_kind)
    parts << QStringLiteral("%1 %2 (%3 %)")
                 .arg(QString::fromStdString(kind),
                      QString::fromStdString(duration_text(std::llround(seconds * 1e9))),
                      percent_text(sum > 0 ? seconds / sum : 0));
  return tr("Critical path of %1: %2")
      .arg(QString::fromStdString(run->name), parts.join(QStringLiteral(", ")));
}

void TimelineLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Window));
  painter.fillRect(QRect(0, 0, width(), 1), palette().color(QPalette::Mid));
  const bool dark = is_dark(palette());
  const int line = fontMetrics().height() + 6, swatch = fontMetrics().ascent();
  int x = 8;
  const auto styles = scene_.styles();
  for (const Style style : kStylesInOrder) {
    if (!styles[style]) continue;
    const QString name = QString::fromStdString(style_name(style));
    const int wide = swatch + 10 + fontMetrics().horizontalAdvance(name);
    if (x + wide > width()) break;
    const QRect box(x, (line - swatch) / 2 + 1, swatch + 4, swatch);
    paint_swatch(painter, box, style, dark);
    painter.setPen(palette().color(QPalette::WindowText));
    painter.drawText(QPoint(x + swatch + 9, 3 + fontMetrics().ascent()), name);
    x += wide + 16;
  }
  const QStringList path = path_lines();
  if (path.isEmpty()) return;
  painter.setPen(Qt::NoPen);
  painter.setBrush(critical_colour(dark));
  painter.drawRect(QRect(8, line + line / 2 - 1, swatch + 4, 2));
  painter.setPen(palette().color(QPalette::WindowText));
  const int left = kBeside + swatch + 9;
  for (int i = 0; i < path.size(); ++i)
    painter.drawText(QPoint(left, (1 + i) * line + 3 + fontMetrics().ascent()), path[i]);
}

}  // namespace rehearse::gui
