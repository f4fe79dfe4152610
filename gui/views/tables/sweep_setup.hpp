// Sets up a sweep of the open scenario: chooses keys and their values, runs it and cancels it.
#pragma once

#include <QMap>
#include <QWidget>
#include <array>
#include <functional>
#include <memory>

#include "gui/models/scenario/command_runner.hpp"
#include "gui/models/scenario/scenario_keys.hpp"

class QAction;
class QBoxLayout;
class QComboBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace rehearse::gui {

class SweepSetup : public QWidget {
  Q_OBJECT
public:
  explicit SweepSetup(QWidget* parent = nullptr);

  // `now` returns the scenario to sweep: its text, name and folder.
  void set_scenario(std::function<RunRequest()> now) { scenario_ = std::move(now); }
  void set_key(int place, const QString& key);        // `place` is 0 or 1; proposes values for the key
  void set_values(int place, const QString& values);  // "1,2,4", "1..16*2"
  void add_button(QAction* action);                   // after the buttons that run and cancel
  void run();
  void cancel() { runner_.cancel_all(); }
  CommandRunner& runner() { return runner_; }
  bool busy() const { return runner_.busy() || runner_.queued() > 0; }
  const RunRequest& swept() const { return swept_; }  // the last sweep that was run

signals:
  void grown(const QString& path);  // the file has more points
  void ended(const rehearse::gui::RunOutcome& outcome);

protected:
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  struct Axis {
    QComboBox* key = nullptr;
    QLineEdit* values = nullptr;
    QString proposed;  // proposed values; the user may have replaced them
  };
  QWidget* make_axis(Axis& axis, const QString& text, const QString& which);
  void read_keys();
  void propose(Axis& axis);
  void follow();
  void end(const RunOutcome& outcome);
  void tell(const QString& text, bool wrong);

  std::function<RunRequest()> scenario_ = [] { return RunRequest(); };
  CommandRunner runner_;
  RunRequest swept_;
  std::shared_ptr<const std::vector<ScenarioKey>> keys_;
  std::array<Axis, 2> axes_;
  QSpinBox* jobs_ = nullptr;
  QAction *run_ = nullptr, *cancel_ = nullptr;
  QBoxLayout *groups_ = nullptr, *controls_ = nullptr;
  QLabel* told_ = nullptr;
  qint64 known_bytes_ = 0;  // size so far of the growing file
  bool reads_keys_ = false, wrong_ = false;
};

}  // namespace rehearse::gui
