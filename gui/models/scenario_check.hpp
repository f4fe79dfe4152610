// Whether the text of a scenario can be run: read and planned off the window's thread while it is written.
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
  QString message;           // what is wrong; names the file if that is not the scenario itself
  int line = 0, column = 0;  // of what is wrong, from 1, in characters; 0: the text as a whole
  // What each key of the form comes to, given or by default: {"training.micro_batch", "1"}. If the text is
  // wrong, empty.
  QMap<QString, QString> values;
  int devices = 0;
};

// As `rehearse simulate` reads it from standard input in `folder`, and writes its schedule.
CheckedScenario check_scenario(const QString& text, const QString& folder);

class ScenarioCheck : public QObject {
  Q_OBJECT
public:
  static constexpr int kDelayMs = 200;

  explicit ScenarioCheck(QObject* parent = nullptr);
  ~ScenarioCheck() override;  // waits for the one under way

  // Checks it once nothing else has been set for kDelayMs; of texts that come meanwhile only the last.
  void set_text(const QString& text, const QString& folder);
  void check_now();  // without the delay
  // Of the text last checked; is_current(): that is the text last set.
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
