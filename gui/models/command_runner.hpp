// Predicts scenarios, sweeps over them, or searches their best plans, by the command-line program as a child
// process, one after the other.
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
  QString folder;  // where file names in it begin
  Task task = Task::predict;
  QStringList settings = {};  // "strategy.virtual_stages=2", over what the text says
  QStringList varied = {};    // of a sweep: "cluster.nodes=1..8*2"
  int jobs = 0;               // of a sweep, simulations at once; 0: as many as there are processors
};

struct RunOutcome {
  enum class Kind { done, failed, cancelled } kind = Kind::failed;
  int id = 0;
  QString name;
  Task task = Task::predict;
  QString error;             // of a failed run: what the program said
  int exit_status = 0;       // -1: it was ended by a signal or never ran
  int line = 0, column = 0;  // of the error, in the text; 0: not told
  // There for as long as the CommandRunner is: of a prediction the trace, of a search the file of plans,
  // beside which their scenarios lie, of a sweep the table of its points, those of a cancelled one too.
  QString path;
  QString told;        // on standard error, without progress
  QByteArray json;     // of `rehearse simulate --format json`, or of `rehearse plan`
  double seconds = 0;  // that it took
};

class CommandRunner : public QObject {
  Q_OBJECT
public:
  static constexpr int kKillAfterMs = 2000;

  explicit CommandRunner(QObject* parent = nullptr);
  ~CommandRunner() override;  // ends the child at once

  // `rehearse` in `folder`, else in PATH; empty if it is in neither.
  static QString find_program(const QString& folder);
  // Where results lie for as long as it is there: a temporary folder of its own, unless another is set.
  QString folder() const { return elsewhere_.isEmpty() ? folder_.path() : elsewhere_; }
  void set_folder(const QString& path) { elsewhere_ = path; }
  // Runs children at the lowest priority, for work that no user waits for.
  void set_low_priority(bool low) { low_priority_ = low; }
  void set_program(const QString& path) { program_ = path; }  // default: found beside this program's binary

  int start(const RunRequest& request);  // now, or when those before it are done; its id
  // Takes it out of the queue, or asks the child to end and kills it if it has not after kKillAfterMs.
  void cancel(int id);
  void cancel_all();

  bool busy() const { return running_.has_value(); }
  int queued() const { return static_cast<int>(queue_.size()); }
  int running_id() const { return running_ ? running_->id : 0; }
  QString running_name() const { return running_ ? running_->request.name : QString(); }
  Task running_task() const { return running_ ? running_->request.task : Task::predict; }
  QString doing() const;  // "Predicting NAME"; empty: nothing is under way
  double elapsed_s() const { return running_ ? static_cast<double>(clock_.elapsed()) / 1000 : 0; }
  QString last_line() const { return last_line_; }  // of what the child told on standard error
  // The result file of the running task; a sweep appends to it line by line.
  QString running_path() const { return running_ ? result_path_ : QString(); }
  double share() const;  // done share of the running task, as the child reports it; -1: not reported

signals:
  void progressed();  // started, waited, told something, ended
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
