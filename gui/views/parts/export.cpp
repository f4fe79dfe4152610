#include "gui/views/parts/export.hpp"

#include <QAbstractItemModel>
#include <QAbstractItemView>
#include <QLayout>
#include <QPainter>
#include <QPlainTextEdit>
#include <QSaveFile>
#include <QScrollBar>
#include <QSplitter>
#include <QSvgGenerator>
#include <QWidget>
#include <algorithm>

#include "models/text/error.hpp"

namespace rehearse::gui {

namespace {

[[noreturn]] void refuse(const QString& path, const QString& why) {
  throw RunError((path + ": cannot be written: " + why).toStdString());
}

QString quoted(QString text) {
  if (!text.contains(',') && !text.contains('"') && !text.contains('\n')) return text;
  return '"' + text.replace("\"", "\"\"") + '"';
}

constexpr const char* kLeftOut = "left_out_of_pictures";
constexpr int kRounds = 8;

using Undo = std::vector<std::function<void()>>;

// Layouts normally react to changes of their widgets through posted events, too late for a picture.
void activate_layouts(QWidget& view) {
  if (view.layout() != nullptr) view.layout()->activate();
  for (QWidget* child : view.findChildren<QWidget*>())
    if (child->layout() != nullptr) child->layout()->activate();
}

// Returns the scroll area that a scroll bar belongs to; null for a standalone scroll bar.
QAbstractScrollArea* area_of(const QScrollBar& bar) {
  QWidget* around = bar.parentWidget();
  if (auto* area = qobject_cast<QAbstractScrollArea*>(around)) return area;
  return around == nullptr ? nullptr : qobject_cast<QAbstractScrollArea*>(around->parentWidget());
}

bool scrolls(const QWidget& part) {
  const auto bars = part.findChildren<QScrollBar*>();
  return std::any_of(bars.begin(), bars.end(), [](const QScrollBar* bar) {
    return bar->maximum() > bar->minimum() && area_of(*bar) != nullptr;
  });
}

void unroll(QAbstractScrollArea& area, Undo& undo, Undo& scroll_back) {
  undo.emplace_back(
      [&area, across = area.horizontalScrollBarPolicy(), down = area.verticalScrollBarPolicy()] {
        area.setHorizontalScrollBarPolicy(across);
        area.setVerticalScrollBarPolicy(down);
      });
  for (QScrollBar* bar : {area.horizontalScrollBar(), area.verticalScrollBar()})
    scroll_back.emplace_back([bar, at = bar->value()] { bar->setValue(at); });
  if (auto* items = qobject_cast<QAbstractItemView*>(&area)) {
    undo.emplace_back([items, mode = items->verticalScrollMode()] { items->setVerticalScrollMode(mode); });
    // Makes the scroll bar's range a number of pixels.
    items->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  }
  area.setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area.setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area.horizontalScrollBar()->setValue(0);
  area.verticalScrollBar()->setValue(0);
}

// Fixes the heights of parts without scroll bars, so that a plot beside a long table does not grow with it.
void keep_heights(const QSplitter& splitter, Undo& undo) {
  std::vector<QWidget*> kept;
  for (int i = 0; i < splitter.count(); ++i)
    if (!scrolls(*splitter.widget(i))) kept.push_back(splitter.widget(i));
  if (static_cast<int>(kept.size()) == splitter.count()) return;
  for (QWidget* part : kept) {
    undo.emplace_back([part, most = part->maximumHeight()] { part->setMaximumHeight(most); });
    part->setMaximumHeight(std::max(1, part->height()));
  }
}

}  // namespace

void leave_out_of_pictures(QWidget& control) {
  control.setProperty(kLeftOut, true);
}

Unrolled::Unrolled(QWidget& view, QSize most) : view_(view), before_(view.geometry()) {
  for (QWidget* widget : view.findChildren<QWidget*>()) {
    if (!widget->isVisibleTo(&view)) continue;
    auto* bar = qobject_cast<QScrollBar*>(widget);
    const bool alone = bar != nullptr && area_of(*bar) == nullptr;
    if (alone) {
      scroll_back_.emplace_back([bar, at = bar->value()] { bar->setValue(at); });
      bar->setValue(bar->minimum());
    }
    if (alone || widget->property(kLeftOut).toBool()) {
      widget->hide();
      undo_.emplace_back([widget] { widget->show(); });
    }
    if (auto* area = qobject_cast<QAbstractScrollArea*>(widget)) unroll(*area, undo_, scroll_back_);
  }
  activate_layouts(view_);
  for (const auto* splitter : view.findChildren<QSplitter*>()) keep_heights(*splitter, undo_);
  // A splitter distributes added room among all its parts, so one round is not always enough.
  for (int round = 0; round < kRounds; ++round) {
    const QSize wanted = view_.size() + missing();
    const QSize size = wanted.boundedTo(most).expandedTo(view_.size());
    cut_ = size != wanted;
    if (size == view_.size()) break;
    view_.resize(size);
    activate_layouts(view_);
  }
}

Unrolled::~Unrolled() {
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
  view_.setGeometry(before_);
  activate_layouts(view_);
  for (const auto& back : scroll_back_) back();
}

QSize Unrolled::missing() const {
  int width = 0, height = 0;
  for (const auto* bar : view_.findChildren<QScrollBar*>()) {
    const QAbstractScrollArea* area = area_of(*bar);
    const QWidget* shown = area != nullptr ? static_cast<const QWidget*>(area) : bar->parentWidget();
    if (!shown->isVisibleTo(&view_)) continue;
    int range = bar->maximum() - bar->minimum();
    if (qobject_cast<const QPlainTextEdit*>(area) && bar->orientation() == Qt::Vertical)
      range *= area->fontMetrics().lineSpacing();  // this bar counts lines
    int& of = bar->orientation() == Qt::Vertical ? height : width;
    of = std::max(of, range);
  }
  return {width, height};
}

QImage picture_of(QWidget& view, double scale) {
  QImage image(view.size() * scale, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(scale);
  image.fill(view.palette().color(QPalette::Window));
  view.render(&image);
  return image;
}

void write_picture(QWidget& view, const QString& path, double scale) {
  if (path.endsWith(".svg", Qt::CaseInsensitive)) {
    QSaveFile file(path);  // reports why the file cannot be written, unlike QSvgGenerator
    if (!file.open(QIODevice::WriteOnly)) refuse(path, file.errorString());
    QSvgGenerator generator;
    generator.setOutputDevice(&file);
    generator.setSize(view.size());
    generator.setViewBox(QRect(QPoint(0, 0), view.size()));
    generator.setTitle(view.accessibleName());
    QPainter painter(&generator);
    painter.fillRect(view.rect(), view.palette().color(QPalette::Window));
    view.render(&painter);
    painter.end();
    if (!file.commit()) refuse(path, file.errorString());
    return;
  }
  if (!path.endsWith(".png", Qt::CaseInsensitive))
    refuse(path, "the name has another ending; allowed: .png, .svg");
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || !picture_of(view, scale).save(&file, "PNG") || !file.commit())
    refuse(path, file.errorString());
}

QString csv_of(const QAbstractItemModel& model) {
  QString text;
  const auto line = [&](auto cell) {
    for (int column = 0; column < model.columnCount(); ++column)
      text += (column > 0 ? "," : "") + quoted(cell(column));
    text += "\n";
  };
  line([&](int column) { return model.headerData(column, Qt::Horizontal).toString(); });
  for (int row = 0; row < model.rowCount(); ++row)
    line([&](int column) { return model.index(row, column).data().toString(); });
  return text;
}

void write_csv(const QAbstractItemModel& model, const QString& path) {
  QSaveFile file(path);
  const QByteArray text = csv_of(model).toUtf8();
  if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size() || !file.commit())
    refuse(path, file.errorString());
}

}  // namespace rehearse::gui
