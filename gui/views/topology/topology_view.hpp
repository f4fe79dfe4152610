// Shows the topology of the current run: the cluster's links coloured by their use over the visible time, the
// names of the busiest ones, and the transfers that use a link.
#pragma once

#include <QWidget>
#include <memory>

#include "gui/models/runs/session.hpp"
#include "gui/models/topology/link_users.hpp"
#include "gui/models/topology/topology_graph.hpp"
#include "gui/models/work/background.hpp"

class QComboBox;
class QLabel;
class QSortFilterProxyModel;
class QSplitter;
class QStackedWidget;
class QTableView;
class QTimer;

namespace rehearse::gui {

class TopologyCanvas;
class UsePlot;

class TopologyView : public QWidget {
  Q_OBJECT
public:
  TopologyView(Session& session, ViewState& state, QWidget* parent = nullptr);

  TopologyCanvas* canvas() const { return canvas_; }
  bool is_ready() const { return known_ != nullptr; }  // the current run's topology has been built
  // Selects a link of the current run as if it had been clicked; nullopt returns to the list of the busiest
  // links.
  void select_link(std::optional<LinkId> link);

signals:
  void ready();

protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

private:
  struct Known;  // results for the current run
  void make_panel();
  void make_actions();
  void load();
  void follow();  // updates the use to the visible time
  void follow_selection();
  void show_links(const std::vector<LinkId>& links, LinkId link);
  void read_users();
  void share_room();
  void fit_names();
  void tell();
  TimeRange visible() const;  // on the timeline's axis
  void choose_user(const QModelIndex& index, bool zoom);

  Session& session_;
  ViewState& state_;
  std::shared_ptr<const Known> known_;
  Latest work_{this};
  std::weak_ptr<const Judged> making_;
  bool stale_ = false;
  LinkUsage::Load use_;
  std::vector<LinkUsage::Busy> busiest_;
  std::optional<LinkId> link_;

  QLabel* summary_ = nullptr;
  QString summary_text_;
  QSplitter* splitter_ = nullptr;
  TopologyCanvas* canvas_ = nullptr;
  QStackedWidget* panel_ = nullptr;
  QTableView* links_ = nullptr;
  QComboBox* which_ = nullptr;
  QLabel* facts_ = nullptr;
  QLabel* kinds_ = nullptr;
  UsePlot* plot_ = nullptr;
  QTableView* users_ = nullptr;
  BusiestLinksModel* links_model_ = nullptr;
  LinkUsersModel* users_model_ = nullptr;
  QSortFilterProxyModel* users_sorted_ = nullptr;
  QTimer* users_timer_ = nullptr;
};

}  // namespace rehearse::gui
