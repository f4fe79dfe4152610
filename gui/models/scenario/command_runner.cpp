#include "gui/models/scenario/command_runner.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QRegularExpression>
#include <QStandardPaths>
#include <algorithm>
#include <csignal>

namespace rehearse::gui {
namespace {

constexpr int kTickMs = 200;
constexpr int kLowest = 19;                     // scheduling priority ("nice" value)
constexpr qsizetype kMostErrorBytes = 1 << 16;  // retained bytes of standard error

// Moves the position out of an error such as "<stdin>:6:16: training.global_batch is 63; ...".
void take_place(RunOutcome& outcome) {
  static const QRegularExpression kPlace(R"(^<stdin>:(?:(\d+):(\d+):)? ?)");
  const QRegularExpressionMatch match = kPlace.match(outcome.error);
  if (!match.hasMatch()) return;
  outcome.line = match.captured(1).toInt();
  outcome.column = match.captured(2).toInt();
  outcome.error.remove(0, match.capturedLength());
}

// Returns the messages of a child without progress lines such as "simulating: 42 %".
QString error_in(const QByteArray& told) {
  static const QRegularExpression kProgress(R"(^[^:]+(: \d+ %| \.\.\.|: \d+ of \d+)$|^plan: bounded )");
  QStringList lines;
  for (const QString& line : QString::fromUtf8(told).split('\n'))
    if (!kProgress.match(line).hasMatch()) lines << line;
  return lines.join('\n').trimmed();
}

// Makes the name a valid file name on any system.
QString file_name(const QString& name) {
  QString safe = name.left(80);
  static const QRegularExpression kUnsafe(R"([^\w.() -])", QRegularExpression::UseUnicodePropertiesOption);
  safe.replace(kUnsafe, "_");
  return safe.isEmpty() || safe.startsWith('.') ? "scenario" + safe : safe;
}

QStringList arguments_of(const RunRequest& request, const QString& result_path) {
  QStringList arguments;
  switch (request.task) {
    case Task::predict:
      arguments = {"simulate", "-", "--format", "json", "--progress", "lines", "--trace", result_path};
      break;
    case Task::plan:
      arguments = {"plan",       "-",     "--format", "json",
                   "--progress", "lines", "--out",    QFileInfo(result_path).path()};
      break;
    case Task::sweep:
      arguments = {"sweep", "-", "--out", result_path};
      if (request.jobs > 0) arguments << "--jobs" << QString::number(request.jobs);
      for (const QString& key : request.varied) arguments << "--vary" << key;
      break;
  }
  for (const QString& setting : request.settings) arguments << "--set" << setting;
  return arguments;
}

QString result_name(const RunRequest& request) {
  switch (request.task) {
    case Task::predict:
      return file_name(request.name) + ".json.gz";
    case Task::plan:
      return "plan.json";
    case Task::sweep:
      break;
  }
  return file_name(request.name) + ".csv";
}

// Whether the table has at least one complete line after its header.
bool has_points(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) && !file.readLine().isEmpty() && file.readLine().endsWith('\n');
}

RunOutcome outcome_of(RunOutcome::Kind kind, int id, const RunRequest& request) {
  RunOutcome outcome;
  outcome.kind = kind;
  outcome.id = id;
  outcome.name = request.name;
  outcome.task = request.task;
  return outcome;
}

}  // namespace

CommandRunner::CommandRunner(QObject* parent) : QObject(parent) {
  tick_.setInterval(kTickMs);
  kill_.setSingleShot(true);
  kill_.setTimerType(Qt::PreciseTimer);
  kill_.setInterval(kKillAfterMs);
  connect(&tick_, &QTimer::timeout, this, &CommandRunner::progressed);
  connect(&kill_, &QTimer::timeout, this, [this] { signal_child(SIGKILL); });
}

CommandRunner::~CommandRunner() {
  queue_.clear();
  if (!child_) return;
  child_->disconnect(this);
  signal_child(SIGKILL);
  child_->waitForFinished(1000);
}

QString CommandRunner::find_program(const QString& folder) {
  const QFileInfo beside(QDir(folder).filePath("rehearse"));
  if (beside.isFile() && beside.isExecutable()) return beside.absoluteFilePath();
  return QStandardPaths::findExecutable("rehearse");
}

int CommandRunner::start(const RunRequest& request) {
  const int id = next_id_++;
  queue_.push_back({id, request});
  // Starts from the event loop, so that the caller knows the id before the first signal about the job.
  QMetaObject::invokeMethod(this, &CommandRunner::start_next, Qt::QueuedConnection);
  return id;
}

void CommandRunner::start_next() {
  if (running_ || queue_.empty()) return;
  running_ = std::move(queue_.front());
  queue_.pop_front();
  errors_.clear();
  last_line_.clear();
  clock_.start();
  RunOutcome failed = outcome_of(RunOutcome::Kind::failed, running_->id, running_->request);
  failed.exit_status = -1;
  const QString program =
      program_.isEmpty() ? find_program(QCoreApplication::applicationDirPath()) : program_;
  if (program.isEmpty()) {
    failed.error = QString("The program rehearse was found neither in %1 nor in PATH.")
                       .arg(QCoreApplication::applicationDirPath());
    return end(failed);
  }
  if ((elsewhere_.isEmpty() && !folder_.isValid()) || !QDir(folder()).mkpath(QString::number(running_->id))) {
    failed.error = QString("Cannot create a temporary folder: %1").arg(folder_.errorString());
    return end(failed);
  }
  result_path_ =
      QDir(folder()).filePath(QString("%1/%2").arg(running_->id).arg(result_name(running_->request)));

  child_ = std::make_unique<QProcess>();
  connect(child_.get(), &QProcess::readyReadStandardError, this, &CommandRunner::read_errors);
  connect(child_.get(), &QProcess::finished, this, &CommandRunner::child_ended);
  connect(child_.get(), &QProcess::errorOccurred, this, &CommandRunner::child_failed);
  if (!running_->request.folder.isEmpty()) child_->setWorkingDirectory(running_->request.folder);
  // The child gets its own process group because it has children itself. None of them outlives the window.
  child_->setChildProcessModifier([low = low_priority_] {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (low) setpriority(PRIO_PROCESS, 0, kLowest);
  });
  child_->start(program, arguments_of(running_->request, result_path_));
  child_->write(running_->request.text.toUtf8());
  child_->closeWriteChannel();
  tick_.start();
  emit progressed();
}

void CommandRunner::read_errors() {
  errors_ += child_->readAllStandardError();
  if (errors_.size() > kMostErrorBytes) errors_.remove(0, errors_.size() - kMostErrorBytes);
  const QStringList lines = QString::fromUtf8(errors_).split('\n', Qt::SkipEmptyParts);
  if (!lines.isEmpty()) last_line_ = lines.last();
  emit progressed();
}

QString CommandRunner::doing() const {
  if (!running_) return {};
  const char* verb = running_->request.task == Task::predict ? "Predicting %1"
                     : running_->request.task == Task::plan  ? "Searching plans for %1"
                                                             : "Sweeping %1";
  return QString(verb).arg(running_->request.name);
}

double CommandRunner::share() const {
  static const QRegularExpression kPercent(R"((\d+) %$)"), kOf(R"((\d+) of (\d+)\b)");
  if (const auto percent = kPercent.match(last_line_); percent.hasMatch())
    return std::min(1.0, percent.captured(1).toDouble() / 100);
  const auto of = kOf.match(last_line_);
  const double all = of.captured(2).toDouble();
  return all > 0 ? std::min(1.0, of.captured(1).toDouble() / all) : -1;
}

void CommandRunner::signal_child(int signal) {
  if (!child_ || child_->processId() <= 0) return;
  const auto pid = static_cast<pid_t>(child_->processId());
  // Signals the process group, or only the child if it has not created its group yet.
  if (::kill(-pid, signal) != 0) ::kill(pid, signal);
}

void CommandRunner::cancel(int id) {
  if (running_ && running_->id == id) {
    if (running_->cancelled) return;
    running_->cancelled = true;
    signal_child(SIGTERM);
    kill_.start();
    return;
  }
  for (auto job = queue_.begin(); job != queue_.end(); ++job) {
    if (job->id != id) continue;
    const RunOutcome cancelled = outcome_of(RunOutcome::Kind::cancelled, id, job->request);
    queue_.erase(job);
    emit finished(cancelled);
    emit progressed();
    return;
  }
}

void CommandRunner::cancel_all() {
  while (!queue_.empty()) cancel(queue_.back().id);
  if (running_) cancel(running_->id);
}

void CommandRunner::child_ended(int exit_code, QProcess::ExitStatus status) {
  read_errors();
  RunOutcome outcome = outcome_of(RunOutcome::Kind::done, running_->id, running_->request);
  outcome.exit_status = status == QProcess::NormalExit ? exit_code : -1;
  outcome.told = error_in(errors_);
  const bool swept = running_->request.task == Task::sweep && has_points(result_path_);
  if (running_->cancelled) {
    outcome.kind = RunOutcome::Kind::cancelled;
    if (swept) outcome.path = result_path_;
  } else if (swept && outcome.exit_status == 1) {  // some points failed
    outcome.path = result_path_;
  } else if (status != QProcess::NormalExit || exit_code != 0) {
    outcome.kind = RunOutcome::Kind::failed;
    outcome.error = outcome.told;
    if (outcome.error.isEmpty())
      outcome.error = status == QProcess::NormalExit
                          ? QString("rehearse ended with exit status %1.").arg(exit_code)
                          : QString("rehearse was terminated by a signal.");
    take_place(outcome);
  } else {
    outcome.json = child_->readAllStandardOutput();
    outcome.path = result_path_;
  }
  end(outcome);
}

void CommandRunner::child_failed(QProcess::ProcessError error) {
  if (error != QProcess::FailedToStart) return;  // for other errors child_ended() is called too
  RunOutcome outcome = outcome_of(RunOutcome::Kind::failed, running_->id, running_->request);
  outcome.exit_status = -1;
  outcome.error = QString("%1 cannot be started: %2").arg(child_->program(), child_->errorString());
  end(outcome);
}

void CommandRunner::end(RunOutcome outcome) {
  outcome.seconds = elapsed_s();
  tick_.stop();
  kill_.stop();
  if (child_) {
    child_->disconnect(this);
    child_.release()->deleteLater();  // not deleted here, because its signal called this function
  }
  running_.reset();
  emit finished(outcome);
  emit progressed();
  start_next();
}

}  // namespace rehearse::gui
