// Views as pictures, tables as text.
#pragma once

#include <QImage>
#include <QString>
#include <functional>
#include <vector>

class QAbstractItemModel;
class QAbstractItemView;
class QWidget;

namespace rehearse::gui {

// Marks a control that only the window needs: a search box, a choice of what is shown.
void leave_out_of_pictures(QWidget& control);

// While it lives, a view is as large as its content: tables with all rows and columns, a timeline with all
// tracks, without scroll bars and the controls that are marked. Larger views than `most` are cut.
class Unrolled {
public:
  explicit Unrolled(QWidget& view, QSize most = {6'000, 8'000});
  ~Unrolled();
  Unrolled(const Unrolled&) = delete;
  Unrolled& operator=(const Unrolled&) = delete;
  bool cut() const { return cut_; }

private:
  QSize missing() const;  // what is out of sight
  QWidget& view_;
  QRect before_;
  bool cut_ = false;
  std::vector<std::function<void()>> undo_, scroll_back_;
};

// As it stands in the window, two pixels for one.
QImage picture_of(QWidget& view, double scale = 2);
// RunError names the path and why it cannot be written. `path` ends in .png or .svg, which has no scale.
void write_picture(QWidget& view, const QString& path, double scale = 2);

// RFC 4180, with a line of headers; numbers as they are shown. Rows as a filter leaves them.
QString csv_of(const QAbstractItemModel& model);
void write_csv(const QAbstractItemModel& model, const QString& path);  // RunError

}  // namespace rehearse::gui
