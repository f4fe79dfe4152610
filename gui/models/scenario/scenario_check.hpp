// Checks whether the text of a scenario can be run: reads it and plans it off the window's thread while the
// user types.
#pragma once

#include <QMap>
#include <QObject>
#include <QString>
#include <QThreadPool>
#include <QTimer>

namespace rehearse::gui {

struct CheckedScenario {
  bool ok = false;
  QString summary;           // "ResNet-50 on 32 devices: data 32, ring all-reduce, bf16"; empty if not ok
  QString message;           // the error; names the file if the error is in another one
  int line = 0, column = 0;  // position of the error in characters, from 1; 0: the text as a whole
  // The effective value of each key of the form, given or default: {"training.micro_batch", "1"}. Empty if
  // the text has errors.
  QMap<QString, QString> values;
  int devices = 0;
};

// Reads the text as `rehearse simulate` reads it from standard input in `folder`, and writes its schedule.
CheckedScenario check_scenario(const QString& text, const QString& folder);

class ScenarioCheck : public QObject {
  Q_OBJECT
public:
  static constexpr int kDelayMs = 200;

  explicit ScenarioCheck(QObject* parent = nullptr);
  ~ScenarioCheck() override;  // waits for the check in progress

  // Checks the text once it has not changed for kDelayMs. If it changes during a check, only the last text is
  // checked next.
  void set_text(const QString& text, const QString& folder);
  void check_now();  // without the delay
  // The result for the last checked text; is_current() says whether that is the text last set.
  const CheckedScenario& result() const { return result_; }
  bool is_current() const { return !timer_.isActive() && !running_; }

signals:
  void checked();

private:
  void start();
  QTimer timer_;
  QThreadPool pool_;
  QString text_, folder_;
  bool running_ = false, again_ = false;
  CheckedScenario result_;
};

}  // namespace rehearse::gui
