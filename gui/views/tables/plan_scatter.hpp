// Plots plans by two of their figures, and marks the Pareto front: plans that no other plan beats in both.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/models/tables/plan_figures.hpp"

class QAbstractScrollArea;
class QComboBox;
class QLabel;

namespace rehearse::gui {

class PlotView;

class PlanScatter : public QWidget {
  Q_OBJECT
public:
  explicit PlanScatter(QWidget* parent = nullptr);

  void show_plans(std::shared_ptr<const PlanFile> file);
  void set_shown(std::vector<bool> shown);  // indexed by plan
  void set_selected(std::vector<std::size_t> plans);
  void set_figures(PlanFigure across, PlanFigure up);  // figures that the plans have
  const std::vector<std::size_t>& front() const { return front_; }
  // Returns where the plan's point is, in pixels of the widget; nullopt if it has none.
  std::optional<QPoint> place_of(std::size_t plan) const;
  QAbstractScrollArea& plot() const;  // receives the keys; its viewport shows the points

signals:
  void picked(std::size_t plan, bool beside_others);
  void activated();  // Enter or a double click: opens the selected plans

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  PlanFigure figure_of(const QComboBox& box) const;
  std::optional<QPointF> value_at(std::size_t plan) const;  // in the units of the axes
  std::optional<std::size_t> plan_near(QPointF place) const;
  bool step(int key, bool beside_others);  // moves to the next point; false if the key does not mean that
  void draw();
  void draw_points();
  void mark();

  std::shared_ptr<const PlanFile> file_ = std::make_shared<const PlanFile>();
  std::vector<bool> shown_;
  std::vector<std::size_t> selected_, front_;
  Unit across_unit_, up_unit_;
  QComboBox *across_ = nullptr, *up_ = nullptr;
  QAction* logarithmic_ = nullptr;
  QLabel* legend_ = nullptr;
  PlotView* plot_ = nullptr;
};

}  // namespace rehearse::gui
