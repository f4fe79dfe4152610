// Opens files off the window's thread: of traces first the timeline, then what the simulator's tools make of
// it; and tables of results.
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

#include "gui/models/result_file.hpp"
#include "gui/models/session.hpp"
#include "gui/models/trace_file.hpp"

namespace rehearse::gui {

// Runs of more spans are not read a second time by the simulator's tools, which hold them as a document.
inline constexpr std::size_t kMostJudgedSpans = 500'000;

class Loader : public QObject {
  Q_OBJECT
public:
  explicit Loader(Session& session, QObject* parent = nullptr);
  ~Loader() override;  // cancels what is under way and waits for it

  // Profiles of several ranks of one job that are opened together become one run. `names` of the runs; empty
  // or fewer: the file's. Returns the number under which finished() tells of it.
  int open(const QStringList& paths, const QStringList& names = {});
  void reload(int run);  // its file again; the run keeps its id
  void open_results(const QString& path);
  bool busy() const { return !jobs_.empty(); }
  double share() const;  // of all that is being read, 0 to 1
  void cancel();

signals:
  void busy_changed(bool busy);
  void progressed(double share);
  void opened(int run);
  // The runs that came of the paths, in their order; 0: none (it failed, or it is a rank of another's run).
  void finished(int number, const std::vector<int>& runs);
  void judged(int run);  // Run::judged or not_judged is known
  // Whoever shows them may move them away.
  void results_read(const QString& path, const std::shared_ptr<rehearse::gui::ResultFile>& results);
  void failed(const QString& path, const QString& message);  // which names the path

private:
  int start(const QStringList& paths, const QStringList& names, int replaced);
  int take(Run run, int replaced);  // returns its id
  void judge_later(const Run& run);
  // Runs `work` on another thread, and what it returns on this one. Returns the job's number.
  int in_background(std::function<std::function<void()>(Progress&)> work);

  Session& session_;
  QThreadPool pool_;
  QTimer ticks_;
  std::map<int, std::shared_ptr<Progress>> jobs_;
  int next_job_ = 1;
};

}  // namespace rehearse::gui
