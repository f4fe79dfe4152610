// Curves through the points of a sweep, and the points as a table.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>

#include "gui/models/background.hpp"
#include "gui/models/result_file.hpp"
#include "gui/models/session.hpp"
#include "gui/views/table_view.hpp"

class QComboBox;
class QLabel;
class QSplitter;

namespace rehearse::gui {

class PlotView;

class ScalingView : public QWidget {
  Q_OBJECT
public:
  ScalingView(Session& session, ViewState& state, QWidget* parent = nullptr);
  void show_sweep(const QString& path, ReadSweep read);
  const QString& path() const { return path_; }  // empty: nothing is open

  void set_axis(const QString& axis);
  void set_figure(SweepFigure figure);
  const std::vector<Curve>& curves() const { return curves_; }
  // Of a row of the table, in pixels of the view; nothing: it has no point.
  std::optional<QPoint> place_of(int row) const;
  const TableView& table() const { return *points_; }

signals:
  void open_requested(const QString& path);

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  QAction* make_switch(const QString& text, const QString& key, const QString& tip, bool on);
  struct Drawing;
  void draw();
  void show_drawing(Drawing made);
  void mark(int row);
  std::optional<QPointF> value_of(int row) const;  // in the units of the axes; nothing: no curve has it
  bool eventFilter(QObject* watched, QEvent* event) override;

  std::shared_ptr<const SweepTable> sweep_ = std::make_shared<const SweepTable>();
  Latest drawing_{this};
  QString path_;
  std::vector<Curve> curves_;
  QLabel *nothing_ = nullptr, *problems_ = nullptr;
  QWidget* told_ = nullptr;
  QSplitter* split_ = nullptr;
  QComboBox *axis_ = nullptr, *figure_ = nullptr;
  QAction *log_x_ = nullptr, *log_y_ = nullptr, *ideal_ = nullptr;
  PlotView* plot_ = nullptr;
  TableView* points_ = nullptr;
};

}  // namespace rehearse::gui
