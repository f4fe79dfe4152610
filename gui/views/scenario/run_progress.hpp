// Shows the running prediction or search in one line: its progress, the program's last message, and a button
// to cancel it.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QPointer>
#include <QProgressBar>
#include <QToolButton>

#include "gui/models/scenario/command_runner.hpp"

namespace rehearse::gui {

// Stays hidden until a task takes longer than kShownAfter_s.
class RunProgress : public QFrame {
  Q_OBJECT
public:
  static constexpr double kShownAfter_s = 0.5;

  explicit RunProgress(CommandRunner& runner, QWidget* parent = nullptr);

  QLabel& told() { return *told_; }
  QProgressBar& bar() { return *bar_; }
  QToolButton& cancel() { return *cancel_; }

protected:
  void resizeEvent(QResizeEvent* event) override;

private:
  void follow();
  QPointer<CommandRunner> runner_;
  QLabel *told_, *said_;
  QProgressBar* bar_;
  QToolButton* cancel_;
};

}  // namespace rehearse::gui
