// Plots predicted over measured step times and lists the errors in a table.
#pragma once

#include <QWidget>
#include <optional>

#include "gui/models/runs/session.hpp"
#include "gui/models/tables/accuracy_table.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/parts/table_view.hpp"
#include "gui/views/parts/when_seen.hpp"

class QLabel;
class QSplitter;

namespace rehearse::gui {

class PlotView;

class AccuracyView : public QWidget {
  Q_OBJECT
public:
  AccuracyView(Session& session, ViewState& state, QWidget* parent = nullptr);
  // Shows the table that `rehearse validate FOLDER --format csv` wrote, together with the session's own
  // pairs.
  void show_validation(const QString& path, const AccuracyTable& table);
  const QString& path() const { return path_; }  // empty if no file is open
  void close_file();                             // only the session's pairs remain

  const std::vector<AccuracyPoint>& points() const { return points_; }
  // Returns where the point of a table row is drawn, in pixels of the view; nullopt if it has none.
  std::optional<QPoint> place_of(int row) const;
  const TableView& table() const { return *rows_; }

signals:
  void open_requested(const QString& path);

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  void collect();  // compares the session's runs on another thread
  void tell();
  void draw();
  void mark(int row);
  bool has_point(int row) const;
  QPointF value_of(std::size_t row) const;  // in the units of the axes
  bool eventFilter(QObject* watched, QEvent* event) override;

  Session& session_;
  AccuracyTable of_file_, of_session_;
  std::vector<AccuracyPoint> points_;
  double factor_ = 1;  // converts seconds to the unit of the axes
  QString path_;
  WhenSeen again_{this, [this] { collect(); }};
  Latest collecting_{this};
  QLabel *nothing_ = nullptr, *summary_ = nullptr;
  QWidget* told_ = nullptr;
  QSplitter* split_ = nullptr;
  PlotView* plot_ = nullptr;
  TableView* rows_ = nullptr;
  QAction* close_ = nullptr;
};

}  // namespace rehearse::gui
