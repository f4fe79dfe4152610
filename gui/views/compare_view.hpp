// Runs against the first that is shown: the sentence, their breakdowns side by side, and tables of what
// differs.
#pragma once

#include <QWidget>
#include <atomic>
#include <memory>

#include "gui/models/session.hpp"
#include "gui/views/stacked_bars.hpp"
#include "gui/views/table_view.hpp"

class QLabel;
class QLineEdit;
class QScrollArea;
class QSplitter;
class QStackedWidget;
class QTabBar;
class QTimer;

namespace rehearse::gui {

class CompareView : public QWidget {
  Q_OBJECT
public:
  CompareView(Session& session, ViewState& state, QWidget* parent = nullptr);
  ~CompareView() override;
  const TableView& figures_table() const { return *figures_; }
  const TableView& ops_table() const { return *ops_; }

signals:
  void compared();  // what takes longer is there

protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

private:
  void changed();  // compares again once events are done, or when it is shown
  void compare();

  Session& session_;
  QTimer* soon_ = nullptr;
  bool outdated_ = true;
  std::shared_ptr<std::atomic<bool>> cancelled_;  // of what is under way
  QLabel *nothing_ = nullptr, *sentence_ = nullptr;
  QWidget* left_ = nullptr;
  QSplitter* split_ = nullptr;
  StackedBars* bars_ = nullptr;
  TableView *figures_ = nullptr, *ops_ = nullptr;
  QTabBar* tabs_ = nullptr;
  QStackedWidget* pages_ = nullptr;
  QLineEdit* filter_ = nullptr;
};

}  // namespace rehearse::gui
