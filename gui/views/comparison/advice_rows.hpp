// Lists the advice for a run: each item with its simulated outcome, and buttons that try it or put it into
// the form.
#pragma once

#include <QWidget>
#include <vector>

#include "gui/models/comparison/advice_trials.hpp"

class QGridLayout;
class QLabel;
class QPushButton;

namespace rehearse::gui {

class AdviceRows : public QWidget {
  Q_OBJECT
public:
  explicit AdviceRows(QWidget* parent = nullptr);
  // Lists the trials. With `coming`, only counts those that are still to be simulated instead of listing
  // them.
  void show_trials(const Run& run, const std::vector<AdviceTrial>& trials, bool coming);
  void clear() { show_rows(0); }
  void try_first();  // clicks the first visible "Try it" button

signals:
  void try_requested(int advice);  // index among the trials
  void change_requested(int advice);

private:
  struct Row {
    QLabel* text = nullptr;
    QPushButton *button = nullptr, *change = nullptr;
    int advice = 0;
  };
  void show_rows(std::size_t count);

  std::vector<Row> rows_;
  QGridLayout* grid_ = nullptr;
  QLabel *title_ = nullptr, *waiting_ = nullptr;
};

}  // namespace rehearse::gui
