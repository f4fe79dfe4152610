#include "gui/views/timeline/minimap.hpp"

#include <QMouseEvent>
#include <QPainter>

#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

constexpr int kBand = 14, kMargin = 3, kEdgeReach = 5;
constexpr int kMostRows = 48;  // rows of a run that are sampled at most
// Styles from the bottom of a band upwards: computing at the bottom, waiting on top.
constexpr std::array<Style, kStyles> kStacked = {1, 4, 2, 5, 3, 0, 6, 9, 10, 11, 12, 14, 13, 8, 7};

// Returns at most kMostRows evenly spaced rows of the entire run: summaries of its ranks, or any rows if
// there are none.
std::vector<int> telling_rows(const Timeline& timeline) {
  std::vector<int> rows;
  for (const Process& process : timeline.processes)
    if (process.summary_row >= 0) rows.push_back(process.summary_row);
  if (rows.empty())
    for (std::size_t r = 0; r < timeline.rows.size(); ++r) rows.push_back(static_cast<int>(r));
  if (rows.size() <= kMostRows) return rows;
  std::vector<int> some;
  for (std::size_t i = 0; i < kMostRows; ++i) some.push_back(rows[i * rows.size() / kMostRows]);
  return some;
}

}  // namespace

Minimap::Minimap(TimelineScene& scene, QWidget* parent) : QWidget(parent), scene_(scene) {
  setAccessibleName(tr("Overview"));
  setToolTip(tr("The entire time. Drag the handle to move the visible part, its edges to zoom."));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  setMouseTracking(true);
  const auto old = [this] {
    bands_old_ = true;
    updateGeometry();
    update();
  };
  connect(&scene_, &TimelineScene::lines_changed, this, old);
  connect(&scene_, &TimelineScene::content_changed, this, old);
  connect(&scene_, &TimelineScene::hits_changed, this, old);
  connect(&scene_.state(), &ViewState::whole_changed, this, old);
  connect(&scene_.state(), &ViewState::marks_changed, this, [this] {
    if (course_shown_ != scene_.state().shows_critical_path()) bands_old_ = true;
    update();
  });
  connect(&scene_.state(), &ViewState::visible_changed, this, [this] { update(); });
}

QSize Minimap::sizeHint() const {
  const int runs = std::clamp(static_cast<int>(scene_.session().shown().size()), 1, 4);
  return {100, runs * (runs == 1 ? 2 * kBand : kBand + 1) + 2 * kMargin};
}

TimeScale Minimap::scale() const {
  return {scene_.state().whole(), 0, static_cast<double>(std::max(1, width()))};
}

void Minimap::resizeEvent(QResizeEvent*) {
  bands_old_ = true;
}

void Minimap::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) bands_old_ = true;
  QWidget::changeEvent(event);
}

void Minimap::paint_bands(QPainter& painter) const {
  const auto shown = scene_.session().shown();
  if (shown.empty()) return;
  const bool dark = is_dark(palette());
  const double band = static_cast<double>(height() - 2 * kMargin) / static_cast<double>(shown.size());
  for (std::size_t n = 0; n < shown.size(); ++n) {
    const Run& run = *shown[n];
    if (!run.timeline || scene_.state().whole().length() <= 0) continue;
    TimeScale scale = this->scale();
    scale.range.begin += run.aligned;
    scale.range.end += run.aligned;
    const Mipmaps* made = scene_.mipmaps(run.id);
    const auto rows = telling_rows(*run.timeline);
    std::vector<std::array<float, kStyles>> filled(static_cast<std::size_t>(width()));
    std::vector<Piece> pieces;
    for (const int r : rows) {
      pieces.clear();
      pieces_of(*run.timeline, run.timeline->rows[static_cast<std::size_t>(r)],
                made ? &made->rows[static_cast<std::size_t>(r)] : nullptr, scale, pieces);
      for (const Piece& piece : pieces)
        for (int x = std::max(0, static_cast<int>(piece.left)); x < std::min<double>(width(), piece.right);
             ++x) {
          const double part = std::min<double>(x + 1, piece.right) - std::max<double>(x, piece.left);
          filled[static_cast<std::size_t>(x)][piece.style] += piece.busy * static_cast<float>(part);
        }
    }
    // Stack the styles in the order of kStacked, from the bottom upwards.
    const double top = kMargin + static_cast<double>(n) * band, full = band - (shown.size() > 1 ? 1 : 0);
    for (int x = 0; x < width(); ++x) {
      const auto& column = filled[static_cast<std::size_t>(x)];
      double y = top + full;
      for (const Style style : kStacked) {
        const double part = column[static_cast<std::size_t>(style)] / static_cast<double>(rows.size()) * full;
        if (part <= 0) continue;
        painter.fillRect(QRectF(x, y - part, 1, part), colour_of(kind_of(style), pass_of(style), dark));
        y -= part;
      }
    }
    paint_course(painter, run, scale, {0, top, static_cast<double>(width()), full});
    if (const Hits* hits = scene_.hits(run.id)) {
      const QColor ink = palette().color(QPalette::Text);
      double last = -1;
      for (auto at = hits->by_time.begin(); at != hits->by_time.end();) {
        const double x = std::floor(scale.x(run.timeline->spans.begin[*at]));
        if (x > last) painter.fillRect(QRectF(x, top + full - 4, 1, 4), ink);
        last = x;
        const Time next = scale.time(x + 1);
        at = std::partition_point(at + 1, hits->by_time.end(),
                                  [&](SpanId s) { return run.timeline->spans.begin[s] < next; });
      }
    }
  }
}

// Draws a line through the ranks that the critical path visits, with the first rank at the top.
void Minimap::paint_course(QPainter& painter, const Run& run, const TimeScale& scale, QRectF band) const {
  const PathRow* path = scene_.path_of(run.id);
  if (!course_shown_ || !path) return;
  const double ranks = static_cast<double>(run.timeline->processes.size());
  QPolygonF course;
  double last_x = -1e9, last_y = -1;
  for (std::size_t i = 0; i < path->spans.size(); ++i) {
    const double y = band.y() + (run.timeline->process_of(path->spans[i]) + 0.5) / ranks * band.height();
    const double left = scale.x(path->timeline.spans.begin[i]), right = scale.x(path->timeline.spans.end[i]);
    // Skip movements of less than half a pixel.
    if (left - last_x < 0.5 && std::abs(y - last_y) < 0.5 && right - last_x < 0.5) continue;
    course << QPointF(left, y) << QPointF(right, y);
    last_x = right;
    last_y = y;
  }
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(palette().color(QPalette::Base), 3.2));
  painter.drawPolyline(course);
  painter.setPen(QPen(critical_colour(is_dark(palette())), 1.4));
  painter.drawPolyline(course);
  painter.restore();
}

void Minimap::paintEvent(QPaintEvent*) {
  const double ratio = devicePixelRatioF();
  if (bands_old_ || bands_.size() != size() * ratio) {
    bands_ = QPixmap(size() * ratio);
    bands_.setDevicePixelRatio(ratio);
    bands_.fill(palette().color(QPalette::Base));
    QPainter painter(&bands_);
    course_shown_ = scene_.state().shows_critical_path();
    paint_bands(painter);
    bands_old_ = false;
  }
  QPainter painter(this);
  painter.drawPixmap(0, 0, bands_);
  painter.fillRect(QRect(0, height() - 1, width(), 1), palette().color(QPalette::Mid));
  if (scene_.lines().empty()) return;
  const TimeScale scale = this->scale();
  for (const Bookmark& bookmark : scene_.state().bookmarks())
    painter.fillRect(QRectF(std::floor(scale.x(bookmark.range.begin)), 0,
                            std::max(1.0, scale.x(bookmark.range.end) - scale.x(bookmark.range.begin)), 3),
                     palette().color(QPalette::Highlight));
  // Shade the time outside the visible range.
  const double left = std::clamp<double>(scale.x(scene_.state().visible().begin), 0, width() - 3);
  const double right = std::clamp<double>(scale.x(scene_.state().visible().end), left + 3, width());
  QColor shade = palette().color(QPalette::Window);
  shade.setAlpha(170);
  painter.fillRect(QRectF(0, 0, left, height()), shade);
  painter.fillRect(QRectF(right, 0, width() - right, height()), shade);
  const QColor edge = palette().color(QPalette::Highlight);
  painter.setPen(QPen(edge, 1));
  painter.drawRect(QRectF(std::floor(left), 0, std::max(2.0, std::floor(right - left) - 1), height() - 1));
  for (const double x : {std::floor(left), std::floor(right) - 3})
    painter.fillRect(QRectF(x, height() / 2.0 - 7, 3, 14), edge);
}

int Minimap::edge_at(double x) const {
  const double left = std::abs(x - scale().x(scene_.state().visible().begin));
  const double right = std::abs(x - scale().x(scene_.state().visible().end));
  if (std::min(left, right) > kEdgeReach) return 0;
  return left < right ? -1 : 1;
}

void Minimap::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || scene_.state().whole().length() <= 0) return;
  const double x = event->position().x();
  const TimeRange visible = scene_.state().visible();
  edge_ = edge_at(x);
  const double left = scale().x(visible.begin), right = scale().x(visible.end);
  grabbed_at_ = x - left;
  if (edge_ == 0 && (x < left || x > right)) {
    grabbed_at_ = (right - left) / 2;
    mouseMoveEvent(event);
  }
}

void Minimap::mouseMoveEvent(QMouseEvent* event) {
  const double x = event->position().x();
  if (!(event->buttons() & Qt::LeftButton)) {
    setCursor(edge_at(x) != 0 ? Qt::SplitHCursor : Qt::ArrowCursor);
    return;
  }
  TimeRange range = scene_.state().visible();
  const Time time = scale().time(std::clamp<double>(x, 0, width()));
  if (edge_ != 0) {
    (edge_ < 0 ? range.begin : range.end) = time;
    if (range.length() < 10) return;
    scene_.state().set_visible(range, false);
  } else {
    const Time begin = scale().time(x - grabbed_at_);
    scene_.state().set_visible(panned(range, begin - range.begin, scene_.state().whole()), false);
  }
}

void Minimap::mouseReleaseEvent(QMouseEvent*) {
  scene_.state().set_visible(scene_.state().visible());
}

void Minimap::wheelEvent(QWheelEvent* event) {
  ViewState& state = scene_.state();
  const double steps = event->angleDelta().y() / 120.0;
  state.set_visible(
      zoomed(state.visible(), std::pow(0.8, steps), scale().time(event->position().x()), state.whole()));
  event->accept();
}

}  // namespace rehearse::gui
