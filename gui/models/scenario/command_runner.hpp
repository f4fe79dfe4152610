// Runs the command-line program as a child process to predict scenarios, sweep over them or search for their
// best plans; one job at a time.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTimer>
#include <deque>
#include <memory>
#include <optional>

namespace rehearse::gui {

enum class Task { predict, plan, sweep };

struct RunRequest {
  QString text, name;
  QString folder;  // base folder of relative file names in the text
  Task task = Task::predict;
  QStringList settings = {};  // override the text: "strategy.virtual_stages=2"
  QStringList varied = {};    // axes of a sweep: "cluster.nodes=1..8*2"
  int jobs = 0;               // concurrent simulations of a sweep; 0: one per processor
};

struct RunOutcome {
  enum class Kind { done, failed, cancelled } kind = Kind::failed;
  int id = 0;
  QString name;
  Task task = Task::predict;
  QString error;             // message of the program if the run failed
  int exit_status = 0;       // -1: ended by a signal, or never ran
  int line = 0, column = 0;  // position of the error in the text; 0: not reported
  // The result file; exists as long as the CommandRunner does. For a prediction it is the trace; for a search
  // the plans file, with the scenarios of the plans beside it; for a sweep the table of its points (also if
  // it was cancelled).
  QString path;
  QString told;        // messages on standard error, without progress lines
  QByteArray json;     // output of `rehearse simulate --format json` or `rehearse plan`
  double seconds = 0;  // duration of the run
};

class CommandRunner : public QObject {
  Q_OBJECT
public:
  static constexpr int kKillAfterMs = 2000;

  explicit CommandRunner(QObject* parent = nullptr);
  ~CommandRunner() override;  // kills the child at once

  // Looks for `rehearse` in `folder`, then in PATH; returns an empty string if it is in neither.
  static QString find_program(const QString& folder);
  // Folder of the results: a temporary folder that is removed with this object, unless set_folder() was
  // called.
  QString folder() const { return elsewhere_.isEmpty() ? folder_.path() : elsewhere_; }
  void set_folder(const QString& path) { elsewhere_ = path; }
  // Runs the children at the lowest priority, for work that the user is not waiting for.
  void set_low_priority(bool low) { low_priority_ = low; }
  // Sets the program to run; default: find_program() with the folder of this program's binary.
  void set_program(const QString& path) { program_ = path; }

  int start(const RunRequest& request);  // queues a job and returns its id
  // Removes the job from the queue. If it is running, asks the child to end and kills it after kKillAfterMs.
  void cancel(int id);
  void cancel_all();

  bool busy() const { return running_.has_value(); }
  int queued() const { return static_cast<int>(queue_.size()); }
  int running_id() const { return running_ ? running_->id : 0; }
  QString running_name() const { return running_ ? running_->request.name : QString(); }
  Task running_task() const { return running_ ? running_->request.task : Task::predict; }
  QString doing() const;  // "Predicting NAME"; empty when idle
  double elapsed_s() const { return running_ ? static_cast<double>(clock_.elapsed()) / 1000 : 0; }
  QString last_line() const { return last_line_; }  // last line the child wrote to standard error
  // The result file of the running task. A sweep appends to it line by line.
  QString running_path() const { return running_ ? result_path_ : QString(); }
  // Returns the completed share (0 to 1) of the running task as reported by the child; -1: not reported.
  double share() const;

signals:
  void progressed();  // a child started, wrote to standard error or ended, or another tick passed
  void finished(const rehearse::gui::RunOutcome& outcome);

private:
  struct Job {
    int id = 0;
    RunRequest request;
    bool cancelled = false;
  };
  void start_next();
  void read_errors();
  void child_ended(int exit_code, QProcess::ExitStatus status);
  void child_failed(QProcess::ProcessError error);
  void end(RunOutcome outcome);
  void signal_child(int signal);

  QString program_, elsewhere_;
  QTemporaryDir folder_;
  bool low_priority_ = false;
  std::unique_ptr<QProcess> child_;
  std::optional<Job> running_;
  std::deque<Job> queue_;
  QElapsedTimer clock_;
  QTimer tick_, kill_;
  QByteArray errors_;
  QString last_line_, result_path_;
  int next_id_ = 1;
};

}  // namespace rehearse::gui
