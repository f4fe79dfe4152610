// Compares the shown runs with the first one: a sentence, breakdowns side by side, and tables of differences.
#pragma once

#include <QWidget>

#include "gui/models/runs/session.hpp"
#include "gui/models/work/background.hpp"
#include "gui/views/comparison/stacked_bars.hpp"
#include "gui/views/parts/table_view.hpp"
#include "gui/views/parts/when_seen.hpp"

class QLabel;
class QLineEdit;
class QScrollArea;
class QSplitter;
class QStackedWidget;
class QTabBar;

namespace rehearse::gui {

class CompareView : public QWidget {
  Q_OBJECT
public:
  CompareView(Session& session, ViewState& state, QWidget* parent = nullptr);
  const TableView& figures_table() const { return *figures_; }
  const TableView& ops_table() const { return *ops_; }

signals:
  void compared();  // the background computation has finished

protected:
  void resizeEvent(QResizeEvent* event) override;

private:
  void compare();
  void give_room();  // widens the table so that its differences are visible

  Session& session_;
  WhenSeen again_{this, [this] { compare(); }};
  Latest work_{this};
  QLabel *nothing_ = nullptr, *sentence_ = nullptr;
  QWidget* left_ = nullptr;
  QSplitter* split_ = nullptr;
  bool by_hand_ = false;  // the user moved the splitter
  StackedBars* bars_ = nullptr;
  TableView *figures_ = nullptr, *ops_ = nullptr;
  QTabBar* tabs_ = nullptr;
  QStackedWidget* pages_ = nullptr;
  QLineEdit* filter_ = nullptr;
};

}  // namespace rehearse::gui
