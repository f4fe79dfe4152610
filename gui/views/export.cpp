#include "gui/views/export.hpp"

#include <QAbstractItemModel>
#include <QPainter>
#include <QSaveFile>
#include <QSvgGenerator>
#include <QWidget>

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

}  // namespace

QImage picture_of(QWidget& view, double scale) {
  QImage image(view.size() * scale, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(scale);
  image.fill(view.palette().color(QPalette::Window));
  view.render(&image);
  return image;
}

void write_picture(QWidget& view, const QString& path, double scale) {
  if (path.endsWith(".svg", Qt::CaseInsensitive)) {
    QSaveFile file(path);  // tells why it cannot be written, which the generator does not
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
    refuse(path, "the name ends otherwise; allowed: .png, .svg");
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
