// Exports views as pictures and tables as text.
#pragma once

#include <QImage>
#include <QString>
#include <functional>
#include <vector>

class QAbstractItemModel;
class QAbstractItemView;
class QWidget;

namespace rehearse::gui {

// Marks a control that makes sense only in the window, for instance a search box; pictures omit it.
void leave_out_of_pictures(QWidget& control);

// Resizes a view to its content for as long as this object lives: tables show all rows and columns, a
// timeline all tracks, without scroll bars and marked controls. Cuts views that are larger than `most`.
class Unrolled {
public:
  explicit Unrolled(QWidget& view, QSize most = {6'000, 8'000});
  ~Unrolled();
  Unrolled(const Unrolled&) = delete;
  Unrolled& operator=(const Unrolled&) = delete;
  bool cut() const { return cut_; }

private:
  QSize missing() const;  // size of the content that is scrolled out of view
  QWidget& view_;
  QRect before_;
  bool cut_ = false;
  std::vector<std::function<void()>> undo_, scroll_back_;
};

// Renders the view as it appears in the window, by default with two pixels for each of its pixels.
QImage picture_of(QWidget& view, double scale = 2);
// Writes a .png or .svg file, by the extension of `path`; `scale` does not apply to .svg. Throws RunError
// that names the path and the reason if it cannot be written.
void write_picture(QWidget& view, const QString& path, double scale = 2);

// Returns the table in CSV format (RFC 4180) with a header line: formatted numbers, only rows that pass the
// filter.
QString csv_of(const QAbstractItemModel& model);
// Throws RunError if the file cannot be written.
void write_csv(const QAbstractItemModel& model, const QString& path);

}  // namespace rehearse::gui
