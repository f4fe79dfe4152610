// Explains why a step takes as long as it does: its figures, its breakdown, and its critical path.
#pragma once

#include <QWidget>

#include "gui/models/comparison/advice_trials.hpp"
#include "gui/models/runs/session.hpp"
#include "gui/views/comparison/stacked_bars.hpp"
#include "gui/views/parts/when_seen.hpp"

class QAction;
class QBoxLayout;
class QLabel;
class QScrollArea;

namespace rehearse::gui {

class AdviceRows;

class WhyView : public QWidget {
  Q_OBJECT
public:
  WhyView(Session& session, ViewState& state, QWidget* parent = nullptr);
  // Returns the content as text; for a judged run, the report of the command line.
  QString as_text() const;
  AdviceTrials& trials() { return trials_; }
  // Sets whether advice is simulated automatically, without a command of the user.
  void set_tries_advice(bool tries);
  bool busy() const { return trials_.busy() || seen_.waiting(); }

signals:
  void open_requested(const QString& trace, const QString& name);
  void run_requested(const QString& text, const QString& name, const QStringList& settings);
  void compare_requested();
  void change_requested(int run, const QStringList& settings);

protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  void tell();
  void place();
  void tell_figures(const Run& run);
  void tell_advice();
  void try_advice(int advice);
  void put_in_form(int advice);

  Session& session_;
  AdviceTrials trials_;
  WhenSeen seen_;  // starts trials of advice when the view is visible
  QAction* tries_ = nullptr;
  AdviceRows* advice_ = nullptr;
  QScrollArea* scroll_ = nullptr;
  QWidget* told_ = nullptr;
  QLabel *nothing_ = nullptr, *cause_ = nullptr, *title_ = nullptr, *how_ = nullptr, *sentences_ = nullptr,
         *figures_ = nullptr, *path_title_ = nullptr, *bar_title_ = nullptr;
  StackedBars *breakdown_ = nullptr, *path_ = nullptr;
  QBoxLayout* columns_ = nullptr;
};

}  // namespace rehearse::gui
