// Lists the window's runs: which are shown, which is the base, and how they compare.
#pragma once

#include <QToolBar>
#include <QTreeView>
#include <QWidget>

#include "gui/models/runs/run_list.hpp"
#include "gui/models/runs/session.hpp"
#include "gui/models/runs/view_state.hpp"

namespace rehearse::gui {

class RunsView : public QWidget {
  Q_OBJECT
public:
  RunsView(Session& session, ViewState& state, QWidget* parent = nullptr);

  RunList& list() { return list_; }
  QTreeView& table() { return *table_; }

signals:
  void reload_requested(int run);     // Run::id
  void duplicate_requested(int run);  // as a draft of its scenario: ScenarioView::duplicate_run()

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  QAction* add(const char* text, const QKeySequence& keys, const char* tip, void (RunsView::*slot)());
  void build_table();
  void follow_current();  // makes the session's current run current in the table
  void follow_session();  // enables the actions that are possible
  void lay_out();
  int chosen() const;  // Run::id of the table's current row; 0 if there is none
  void show_or_hide();
  void make_base();
  void rename();
  void remove();
  void reload();
  void duplicate();
  void move_up() { move(-1); }
  void move_down() { move(1); }
  void move(int by);

  Session& session_;
  ViewState& state_;
  RunList list_;
  bool narrow_ = true;
  QTreeView* table_;
  QWidget* empty_;
  QToolBar* tools_;
  QAction *show_, *base_, *rename_, *remove_, *reload_, *duplicate_, *up_, *down_;
};

}  // namespace rehearse::gui
