// Shows the selection: a span's details with links to its neighbours, or the totals of an area.
#pragma once

#include <QWidget>

#include "gui/models/tracks/area_totals.hpp"
#include "gui/models/tracks/span_details.hpp"
#include "gui/models/work/background.hpp"

class QComboBox;
class QLabel;
class QSortFilterProxyModel;
class QStackedLayout;
class QTableView;

namespace rehearse::gui {

class SelectionView : public QWidget {
  Q_OBJECT
public:
  SelectionView(Session& session, ViewState& state, QWidget* parent = nullptr);
  SpanDetailsModel& details() { return details_; }
  AreaTotalsModel& totals() { return totals_; }
  QTableView& details_table() { return *details_table_; }
  QTableView& links_table() { return *links_table_; }
  QTableView& totals_table() { return *totals_table_; }
  QLabel& heading() { return *heading_; }
  // Returns the model of the visible page's table; null if nothing is selected.
  QAbstractItemModel* shown_table();

protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  void follow();
  void show_span(SpanRef span);
  void show_area(const Area& area);
  void take_totals(const AreaTotals& totals);
  void follow_link(const QModelIndex& index);
  void copy();
  QTableView* make_details_table(bool links);

  Session& session_;
  ViewState& state_;
  SpanDetailsModel details_;
  AreaTotalsModel totals_;
  AreaTotals both_;
  Latest adding_{this};
  QLabel *swatch_ = nullptr, *heading_ = nullptr;
  QComboBox* by_ = nullptr;
  QStackedLayout* stack_ = nullptr;
  QTableView *details_table_ = nullptr, *links_table_ = nullptr, *totals_table_ = nullptr;
  QSortFilterProxyModel* sorted_ = nullptr;
};

}  // namespace rehearse::gui
