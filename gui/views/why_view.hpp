// Why a step takes as long as it does: the figures, what the step is made of, and what it hangs on.
#pragma once

#include <QWidget>

#include "gui/models/session.hpp"
#include "gui/views/stacked_bars.hpp"

class QBoxLayout;
class QLabel;
class QScrollArea;

namespace rehearse::gui {

class WhyView : public QWidget {
  Q_OBJECT
public:
  WhyView(Session& session, ViewState& state, QWidget* parent = nullptr);
  // What it tells, as text: for a judged run the report of the command line.
  QString as_text() const;

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  void tell();
  void place();
  void tell_figures(const Run& run);

  Session& session_;
  QScrollArea* scroll_ = nullptr;
  QWidget* told_ = nullptr;
  QLabel *nothing_ = nullptr, *title_ = nullptr, *how_ = nullptr, *sentences_ = nullptr, *figures_ = nullptr,
         *path_title_ = nullptr, *bar_title_ = nullptr;
  StackedBars *breakdown_ = nullptr, *path_ = nullptr;
  QBoxLayout* columns_ = nullptr;
};

}  // namespace rehearse::gui
