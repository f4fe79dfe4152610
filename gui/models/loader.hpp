// Opens files off the window's thread: first the timeline, then what the simulator's tools make of it.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QThreadPool>
#include <functional>
#include <map>
#include <memory>

#include "gui/models/session.hpp"
#include "gui/models/trace_file.hpp"

namespace rehearse::gui {

class Loader : public QObject {
  Q_OBJECT
public:
  explicit Loader(Session& session, QObject* parent = nullptr);
  ~Loader() override;  // cancels what is under way and waits for it

  // Traces. Profiles of several ranks of one job that are opened together become one run. `name`: of the run;
  // empty: the file's.
  void open(const QStringList& paths, const QString& name = {});
  // Reads the run's file again; the run keeps its id.
  void reload(int run);
  bool busy() const { return !jobs_.empty(); }
  double share() const;  // of all that is under way, 0 to 1
  void cancel();

signals:
  void busy_changed();
  void progressed();
  void opened(int run);
  void failed(const QString& path, const QString& why);  // InputError's text

private:
  struct Job;
  void start(const QStringList& paths, const QString& name, int replaces);
  void judge_in_background(int run, const std::string& path);
  void finish(int job, const std::function<void()>& then);

  Session& session_;
  QThreadPool pool_;
  std::map<int, std::shared_ptr<Progress>> jobs_;
  int next_job_ = 1;
};

}  // namespace rehearse::gui
