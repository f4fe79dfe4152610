#include "gui/views/timeline/timeline_axis.hpp"

#include <QKeyEvent>
#include <QLineEdit>
#include <QMouseEvent>
#include <QPainter>

namespace rehearse::gui {

namespace {

constexpr int kFlag = 14;  // height of a bookmark's flag, above the marks
constexpr int kFlagWidth = 260, kEditorWidth = 200;

}  // namespace

TimelineAxis::TimelineAxis(TimelineScene& scene, QWidget* parent) : QWidget(parent), scene_(scene) {
  setAccessibleName(tr("Time axis"));
  setToolTip(tr("Time since the step began. Drag to pan."));
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  const auto again = [this] { update(); };
  connect(&scene_, &TimelineScene::lines_changed, this, again);
  connect(&scene_, &TimelineScene::scrolled, this, again);
  connect(&scene_.state(), &ViewState::visible_changed, this, again);
  connect(&scene_.state(), &ViewState::cursor_changed, this, again);
  connect(&scene_.state(), &ViewState::selection_changed, this, again);
  connect(&scene_.state(), &ViewState::marks_changed, this, [this] {
    if (chosen_ >= static_cast<int>(scene_.state().bookmarks().size())) chosen_ = -1;
    update();
  });
}

QSize TimelineAxis::sizeHint() const {
  return {100, fontMetrics().height() + 8 + kFlag};
}

void TimelineAxis::choose(int bookmark) {
  chosen_ = bookmark;
  update();
}

void TimelineAxis::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Window));
  painter.fillRect(QRect(0, height() - 1, width(), 1), palette().color(QPalette::Mid));
  if (scene_.lines().empty()) return;
  const TimeScale scale = scene_.scale();
  QColor ink = palette().color(QPalette::WindowText);
  QColor weak = ink;
  weak.setAlpha(110);
  const int top = kFlag, text_height = fontMetrics().height();
  // Draw a selected area in the same way as on the tracks.
  if (const auto& area = scene_.state().area()) {
    QColor fill = palette().color(QPalette::Highlight);
    fill.setAlpha(60);
    painter.fillRect(QRectF(scale.x(area->range.begin), top,
                            scale.x(area->range.end) - scale.x(area->range.begin), height() - top),
                     fill);
  }
  const auto marks =
      ticks(scale, std::max(110, fontMetrics().horizontalAdvance(QStringLiteral("000.000 ms")) + 40));
  for (const Tick& tick : marks) {
    const double x = std::floor(scale.x(tick.time));
    painter.fillRect(QRectF(x, height() - 7, 1, 6), weak);
    const QString text = QString::fromStdString(tick.text);
    if (x + 6 + fontMetrics().horizontalAdvance(text) > width()) continue;
    painter.setPen(ink);
    painter.drawText(QPointF(x + 4, top + fontMetrics().ascent() + 2), text);
  }
  if (marks.size() > 1) {
    const double distance = scale.x(marks[1].time) - scale.x(marks[0].time);
    for (double x = scale.x(marks[0].time) - distance; x < width(); x += distance / 5)
      painter.fillRect(QRectF(std::floor(x), height() - 4, 1, 3), weak);
  }
  const auto& bookmarks = scene_.state().bookmarks();
  const QColor colour = palette().color(QPalette::Highlight);
  for (std::size_t i = 0; i < bookmarks.size(); ++i) {
    const double left = std::floor(scale.x(bookmarks[i].range.begin)),
                 right = scale.x(bookmarks[i].range.end);
    if (right < 0 || left > width()) continue;
    const QString text = painter.fontMetrics().elidedText(bookmarks[i].text, Qt::ElideRight, kFlagWidth);
    const double flag = std::max(10.0, painter.fontMetrics().horizontalAdvance(text) + 8.0);
    painter.fillRect(QRectF(left, 0, 1, height()), colour);
    if (right > left + 1) painter.fillRect(QRectF(left, kFlag - 2, right - left, 3), colour);
    const QRectF box(left, 0, flag, kFlag);
    painter.fillRect(box, colour);
    if (static_cast<int>(i) == chosen_) {
      painter.setPen(QPen(ink, 1));
      painter.drawRect(box.adjusted(0, 0, -1, -1));
    }
    painter.setPen(palette().color(QPalette::HighlightedText));
    QFont small = font();
    small.setPointSizeF(std::max(6.5, font().pointSizeF() * 0.8));
    painter.setFont(small);
    painter.drawText(box.adjusted(4, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, text);
    painter.setFont(font());
  }
  if (const auto time = scene_.state().cursor()) {
    const double x = std::floor(scale.x(*time));
    const double ns = 1 / scale.pixels_per_ns();
    const QString text = QString::fromStdString(moment_text(*time, ns));
    const int box_width = fontMetrics().horizontalAdvance(text) + 10;
    const double left =
        std::clamp(x - box_width / 2.0, 0.0, std::max(0.0, width() - static_cast<double>(box_width)));
    const QRectF box(left, top, box_width, text_height + 3);
    painter.fillRect(box, palette().color(QPalette::ToolTipBase));
    painter.setPen(palette().color(QPalette::Mid));
    painter.drawRect(box.adjusted(0, 0, -1, -1));
    painter.setPen(palette().color(QPalette::ToolTipText));
    painter.drawText(box, Qt::AlignCenter, text);
    painter.fillRect(QRectF(x, box.bottom(), 1, height() - box.bottom()), ink);
  }
}

int TimelineAxis::bookmark_at(QPointF at) const {
  if (at.y() > kFlag) return -1;
  const TimeScale scale = scene_.scale();
  const auto& bookmarks = scene_.state().bookmarks();
  for (int i = static_cast<int>(bookmarks.size()) - 1; i >= 0; --i) {
    const Bookmark& bookmark = bookmarks[static_cast<std::size_t>(i)];
    const double left = scale.x(bookmark.range.begin);
    const QString text = fontMetrics().elidedText(bookmark.text, Qt::ElideRight, kFlagWidth);
    if (at.x() >= left && at.x() <= left + std::max(10, fontMetrics().horizontalAdvance(text) + 8)) return i;
  }
  return -1;
}

void TimelineAxis::mousePressEvent(QMouseEvent* event) {
  pressed_x_ = event->position().x();
  pressed_visible_ = scene_.state().visible();
  const int bookmark = bookmark_at(event->position());
  choose(bookmark);
  if (bookmark >= 0)
    scene_.reveal_range(scene_.state().bookmarks()[static_cast<std::size_t>(bookmark)].range);
}

void TimelineAxis::mouseDoubleClickEvent(QMouseEvent* event) {
  if (const int bookmark = bookmark_at(event->position()); bookmark >= 0) edit(bookmark);
}

void TimelineAxis::edit(int bookmark) {
  const auto& bookmarks = scene_.state().bookmarks();
  if (bookmark < 0 || bookmark >= static_cast<int>(bookmarks.size())) return;
  stop_editing();
  const Bookmark& mark = bookmarks[static_cast<std::size_t>(bookmark)];
  scene_.reveal_range(mark.range);
  choose(bookmark);
  edited_ = bookmark;
  editor_ = new QLineEdit(mark.text, this);
  editor_->setAccessibleName(tr("Text of the bookmark"));
  editor_->installEventFilter(this);
  const int left = static_cast<int>(
      std::clamp(scene_.scale().x(mark.range.begin), 0.0, std::max(0.0, width() - double{kEditorWidth})));
  editor_->setGeometry(left, 0, kEditorWidth, std::min(height(), editor_->sizeHint().height()));
  editor_->selectAll();
  editor_->show();
  editor_->setFocus();
  connect(editor_, &QLineEdit::editingFinished, this, [this] {
    std::vector<Bookmark> marks = scene_.state().bookmarks();
    if (edited_ >= 0 && edited_ < static_cast<int>(marks.size()) && editor_) {
      marks[static_cast<std::size_t>(edited_)].text = editor_->text().trimmed();
      scene_.state().set_bookmarks(std::move(marks));
    }
    stop_editing();
  });
}

void TimelineAxis::stop_editing() {
  if (!editor_) return;
  QLineEdit* const editor = editor_;
  editor_.clear();
  edited_ = -1;
  editor->disconnect(this);
  editor->hide();
  editor->deleteLater();
  emit edited();
}

// While the field has the focus, it gets all keys before the shortcuts of the tracks.
bool TimelineAxis::eventFilter(QObject* watched, QEvent* event) {
  if (watched != editor_) return false;
  if (event->type() == QEvent::ShortcutOverride) {
    event->accept();
    return true;
  }
  if (event->type() != QEvent::KeyPress || static_cast<QKeyEvent*>(event)->key() != Qt::Key_Escape)
    return false;
  stop_editing();
  return true;
}

void TimelineAxis::mouseMoveEvent(QMouseEvent* event) {
  if (!(event->buttons() & Qt::LeftButton) || chosen_ >= 0) return;
  const double ns =
      1 / TimeScale{pressed_visible_, 0, static_cast<double>(std::max(1, width()))}.pixels_per_ns();
  const auto by = static_cast<Time>(std::llround((pressed_x_ - event->position().x()) * ns));
  scene_.state().set_visible(panned(pressed_visible_, by, scene_.state().whole()), false);
}

}  // namespace rehearse::gui
