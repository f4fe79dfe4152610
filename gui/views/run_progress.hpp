// A line that tells of the prediction or search under way: how far it is, what the program says, and how to
// end it.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QPointer>
#include <QProgressBar>
#include <QToolButton>

#include "gui/models/command_runner.hpp"

namespace rehearse::gui {

// Hidden unless something takes longer than kShownAfter_s.
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
