// Views as pictures, tables as text.
#pragma once

#include <QImage>
#include <QString>

class QAbstractItemModel;
class QAbstractItemView;
class QWidget;

namespace rehearse::gui {

// As it stands in the window, two pixels for one.
QImage picture_of(QWidget& view, double scale = 2);
// RunError names the path and why it cannot be written. `path` ends in .png or .svg, which has no scale.
void write_picture(QWidget& view, const QString& path, double scale = 2);

// RFC 4180, with a line of headers; numbers as they are shown. Rows as a filter leaves them.
QString csv_of(const QAbstractItemModel& model);
void write_csv(const QAbstractItemModel& model, const QString& path);  // RunError

}  // namespace rehearse::gui
