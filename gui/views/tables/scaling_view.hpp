// Plots curves through the points of a sweep and lists the points in a table.
#pragma once

#include <QElapsedTimer>
#include <QWidget>
#include <memory>
#include <optional>

#include "gui/models/runs/session.hpp"
#include "gui/models/tables/result_file.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/parts/table_view.hpp"

class QComboBox;
class QLabel;
class QSplitter;

namespace rehearse::gui {

class PlotView;
class SweepSetup;
struct RunRequest;

class ScalingView : public QWidget {
  Q_OBJECT
public:
  ScalingView(Session& session, ViewState& state, QWidget* parent = nullptr);
  ~ScalingView() override;
  void show_sweep(const QString& path, ReadSweep read);
  const QString& path() const { return path_; }  // empty if no file is open
  SweepSetup& setup() { return *setup_; }
  bool busy() const;                  // sweeping, or reading the results of the sweep
  QString save(const QString& path);  // copies the sweep's file; returns an error message or an empty string

  void set_axis(const QString& axis);
  void set_figure(SweepFigure figure);
  const std::vector<Curve>& curves() const { return curves_; }
  // Returns where the point of a table row is drawn, in pixels of the view; nullopt if it has none.
  std::optional<QPoint> place_of(int row) const;
  const TableView& table() const { return *points_; }

signals:
  void open_requested(const QString& path);
  // Asks to run a point of a sweep that was made in this window.
  void run_requested(const QString& text, const QString& name, const QString& folder,
                     const QStringList& settings);
  void message(const QString& text);
  void saved(const QString& path);

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  QAction* make_switch(const QString& text, const QString& key, const QString& tip, bool on);
  struct Drawing;
  void draw();
  void show_drawing(Drawing made);
  void mark(int row);
  void read_grown(const QString& path, bool last);
  void open_point(int row);
  void choose_where_to_save();
  std::optional<QPointF> value_of(int row) const;  // in the units of the axes; nullopt if it is on no curve
  bool eventFilter(QObject* watched, QEvent* event) override;

  std::shared_ptr<const SweepTable> sweep_ = std::make_shared<const SweepTable>();
  Session& session_;
  SweepSetup* setup_ = nullptr;
  Latest drawing_{this}, growing_{this};
  QElapsedTimer since_read_;
  qint64 read_ms_ = 0;  // duration of the last read
  QString path_;
  std::unique_ptr<RunRequest> swept_;  // the sweep whose points are shown; null if they come from a file
  QAction* save_ = nullptr;
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
