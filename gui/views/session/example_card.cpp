#include "gui/views/session/example_card.hpp"

#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <cmath>

#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {

namespace {

constexpr int kPad = 8, kRound = 5, kPictureHeight = 76, kToldLines = 3;

QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

void paint_bars(QPainter& painter, const Sketch& sketch, const QRectF& into, bool dark) {
  for (const Sketch::Bar& bar : sketch.bars) {
    // Snap to pixel rows vertically so that adjacent rows touch.
    const double top = std::round(into.y() + bar.place.top() * into.height());
    const double bottom = std::round(into.y() + bar.place.bottom() * into.height());
    const QRectF place(into.x() + bar.place.x() * into.width(), top, bar.place.width() * into.width(),
                       bottom - top - (bottom - top > 5 ? 1 : 0));
    painter.fillRect(place & into, colour_of(bar.kind, bar.pass, dark));
  }
}

void paint_curves(QPainter& painter, const Sketch& sketch, const QRectF& into, const QPalette& palette,
                  bool dark) {
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(palette.color(QPalette::Mid), 1));
  painter.drawLine(into.bottomLeft(), into.bottomRight());
  painter.drawLine(into.bottomLeft(), into.topLeft());
  for (const Sketch::Curve& curve : sketch.curves) {
    const QColor colour =
        curve.run < 0 ? palette.color(QPalette::PlaceholderText) : colour_of_run(curve.run, dark);
    QPolygonF line;
    for (const QPointF& point : curve.points)
      line << QPointF(into.x() + point.x() * into.width(), into.y() + point.y() * into.height());
    if (curve.joined) {
      painter.setPen(QPen(colour, curve.run < 0 ? 1 : 2));
      painter.drawPolyline(line);
    }
    if (curve.joined && curve.run < 0) continue;  // a reference line has no markers
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    for (const QPointF& point : line) painter.drawEllipse(point, 2.5, 2.5);
    painter.setBrush(Qt::NoBrush);
  }
}

}  // namespace

ExampleCard::ExampleCard(Example example, QWidget* parent)
    : QAbstractButton(parent), example_(std::move(example)) {
  setObjectName("card " + example_.name);
  setText(example_.title);
  setAccessibleName(example_.title);
  setAccessibleDescription(example_.told);
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setSizePolicy(policy);
}

void ExampleCard::set_sketch(Sketch sketch) {
  sketch_ = std::move(sketch);
  painted_ = {};
  update();
}

int ExampleCard::height_for(int) const {
  return 3 * kPad + kPictureHeight + QFontMetrics(bold(font())).lineSpacing() + 2 +
         kToldLines * fontMetrics().lineSpacing();
}

QSize ExampleCard::sizeHint() const {
  return {210, height_for(210)};
}

QRect ExampleCard::picture_place() const {
  return {kPad, kPad, width() - 2 * kPad, kPictureHeight};
}

QPixmap ExampleCard::picture() const {
  const QRect place = picture_place();
  QPixmap made(place.size() * devicePixelRatioF());
  made.setDevicePixelRatio(devicePixelRatioF());
  const bool dark = is_dark(palette());
  made.fill(palette().color(QPalette::Base));
  QPainter painter(&made);
  const QRectF all(QPointF(), QSizeF(place.size()));
  if (sketch_->curves.empty())
    paint_bars(painter, *sketch_, all, dark);
  else
    paint_curves(painter, *sketch_, all.adjusted(4, 2, -4, -2), palette(), dark);
  return made;
}

void ExampleCard::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool stands_out = hasFocus() || underMouse() || isDown();
  QPainterPath outline;
  outline.addRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), kRound, kRound);
  painter.fillPath(outline, palette().color(isDown() ? QPalette::Midlight : QPalette::Base));
  painter.setPen(QPen(palette().color(stands_out ? QPalette::Highlight : QPalette::Mid), hasFocus() ? 2 : 1));
  painter.drawPath(outline);
  if (sketch_ && !sketch_->empty()) {
    if (painted_.isNull()) painted_ = picture();
    painter.drawPixmap(picture_place().topLeft(), painted_);
  }
  QRect text = rect().adjusted(kPad, kPad + kPictureHeight + kPad, -kPad, -kPad);
  painter.setPen(palette().color(QPalette::Text));
  painter.setFont(bold(font()));
  painter.drawText(text, Qt::AlignLeft | Qt::AlignTop,
                   painter.fontMetrics().elidedText(example_.title, Qt::ElideRight, text.width()));
  text.setTop(text.top() + painter.fontMetrics().lineSpacing() + 2);
  painter.setFont(font());
  QColor weak = palette().color(QPalette::Text);
  weak.setAlpha(200);
  painter.setPen(weak);
  painter.drawText(text, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, example_.told);
}

void ExampleCard::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return click();
    case Qt::Key_Left:
      emit moved(-1, 0);
      return;
    case Qt::Key_Right:
      emit moved(1, 0);
      return;
    case Qt::Key_Up:
      emit moved(0, -1);
      return;
    case Qt::Key_Down:
      emit moved(0, 1);
      return;
    default:
      QAbstractButton::keyPressEvent(event);
  }
}

void ExampleCard::enterEvent(QEnterEvent* event) {
  QAbstractButton::enterEvent(event);
  update();
}

void ExampleCard::leaveEvent(QEvent* event) {
  QAbstractButton::leaveEvent(event);
  update();
}

void ExampleCard::resizeEvent(QResizeEvent* event) {
  painted_ = {};
  QAbstractButton::resizeEvent(event);
}

void ExampleCard::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) painted_ = {};
  QAbstractButton::changeEvent(event);
}

}  // namespace rehearse::gui
