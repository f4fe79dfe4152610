// Opens files off the window's thread. For a trace it first delivers the timeline and later the evaluation by
// the simulator's tools. Also reads tables of results.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QThreadPool>
#include <QTimer>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gui/models/runs/session.hpp"
#include "gui/models/tables/result_file.hpp"
#include "gui/models/trace/trace_file.hpp"

namespace rehearse::gui {

// The simulator's tools do not evaluate larger runs, because they hold the entire trace as a JSON document.
inline constexpr std::size_t kMostJudgedSpans = 500'000;

class Loader : public QObject {
  Q_OBJECT
public:
  explicit Loader(Session& session, QObject* parent = nullptr);
  ~Loader() override;  // cancels running work and waits for it

  // Opens traces. Profiles of several ranks of one job that are opened together become one run. `names` are
  // the runs' names; missing or empty ones default to the file's name. Returns the number that finished()
  // reports.
  int open(const QStringList& paths, const QStringList& names = {});
  void reload(int id);  // reads the run's file again; the run keeps its id
  void open_results(const QString& path);
  bool busy() const { return !jobs_.empty(); }
  double share() const;  // overall progress of reading, 0 to 1
  void cancel();

signals:
  void busy_changed(bool busy);
  void progressed(double share);
  void opened(int run);
  // A run shows the first part of a long trace; opened() follows when it has all of it. If reading ends
  // before that, the run is removed.
  void begun(int run);
  // Reports the runs created from the paths, in order; 0: none (it failed, or is a rank of another path's
  // run).
  void finished(int number, const std::vector<int>& runs);
  void judged(int run);  // Run::judged or Run::not_judged has been set
  // The receiver that shows the results can move from them.
  void results_read(const QString& path, const std::shared_ptr<rehearse::gui::ResultFile>& results);
  void failed(const QString& path, const QString& message);  // the message includes the path

private:
  int start(const QStringList& paths, const QStringList& names, int replaced);
  int take(Run run, int replaced);  // returns the run's id
  void begin(int job, Run run);
  // Returns the run that shows the first part of what the job reads; 0: none, -1: it was closed.
  int run_begun_by(int job);
  void judge_later(const Run& run);
  // Runs `work` on another thread and the function it returns on this one. Returns the job's number.
  int in_background(std::function<std::function<void()>(Progress&)> work);

  Session& session_;
  QThreadPool pool_;
  QTimer ticks_;
  std::map<int, std::shared_ptr<Progress>> jobs_;
  std::map<int, int> begun_;  // by job, the run with the first part of what it reads
  int next_job_ = 1;
};

}  // namespace rehearse::gui
