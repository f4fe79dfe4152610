#include "gui/models/session/loader.hpp"

#include <fmt/format.h>

#include <QFileInfo>
#include <algorithm>
#include <set>

#include "gui/models/comparison/figures.hpp"
#include "gui/models/runs/run_facts.hpp"
#include "gui/models/work/background.hpp"
#include "models/text/error.hpp"

namespace rehearse::gui {

namespace {

constexpr int kTick_ms = 100;

// Returns "gpt3-175b" for ".../gpt3-175b.trace.json.gz".
std::string name_of(const QString& path) {
  QString name = QFileInfo(path).fileName();
  for (const char* ending : {".gz", ".json", ".pt.trace", ".trace"})
    if (name.endsWith(QLatin1String(ending), Qt::CaseInsensitive))
      name.chop(static_cast<int>(qstrlen(ending)));
  return name.toStdString();
}

struct Read {
  std::size_t place = 0;  // index of its path in the request
  QString path;
  Timeline timeline;
  std::string name;  // of the run
};

// Returns "ddp (2 ranks)" for "ddp-rank0" and "ddp-rank1".
std::string name_of_ranks(const std::string& first, const std::string& last, std::size_t ranks) {
  std::string name(first.begin(), std::mismatch(first.begin(), first.end(), last.begin(), last.end()).first);
  for (const std::string_view ending : {"rank", "worker"})
    if (name.size() > ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
      name.resize(name.size() - ending.size());
  while (!name.empty() && std::string_view("-_. ").find(name.back()) != std::string_view::npos)
    name.pop_back();
  return fmt::format("{} ({} ranks)", name.empty() ? first : name, ranks);
}

// Assumes that profiles of different ranks with the same world size belong to one job, and merges them.
std::vector<Read> with_ranks_merged(std::vector<Read> all) {
  std::vector<Read> result;
  std::vector<Timeline> ranks;
  std::set<int> seen;
  int world_size = 0;
  Read first;
  std::string last;
  for (Read& read : all) {
    const RankOfProfile who = rank_of(read.timeline);
    const bool joins = who.world_size > 1 && (world_size == 0 || who.world_size == world_size) &&
                       seen.insert(who.rank).second;
    if (!joins) {
      result.push_back(std::move(read));
      continue;
    }
    world_size = who.world_size;
    if (ranks.empty()) first = {read.place, read.path, {}, read.name};
    last = read.name;
    ranks.push_back(std::move(read.timeline));
  }
  if (ranks.empty()) return result;
  if (ranks.size() > 1) first.name = name_of_ranks(first.name, last, ranks.size());
  first.timeline = ranks.size() == 1 ? std::move(ranks.front()) : merged(std::move(ranks));
  result.push_back(std::move(first));
  return result;
}

Run run_of(Read read, const QString& name) {
  Run run;
  run.path = read.path.toStdString();
  run.name = name.isEmpty() ? read.name : name.toStdString();
  auto timeline = std::make_shared<const Timeline>(std::move(read.timeline));
  run.figures = figures_of(*timeline);
  run.aligned = run.figures.step.length() > 0 ? run.figures.step.begin : timeline->begin;
  if (timeline->writer != Timeline::Writer::rehearse) {
    run.source = Run::Source::profiler;
    run.not_judged = "another program wrote this trace";
  } else {
    facts_of(*timeline, run);
    if (timeline->spans.size() > kMostJudgedSpans)
      run.not_judged = "the trace has more than 500,000 spans, the limit of the detailed analysis";
  }
  run.timeline = std::move(timeline);
  return run;
}

}  // namespace

Loader::Loader(Session& session, QObject* parent) : QObject(parent), session_(session) {
  pool_.setMaxThreadCount(2);
  ticks_.setInterval(kTick_ms);
  connect(&ticks_, &QTimer::timeout, this, [this] { emit progressed(share()); });
}

Loader::~Loader() {
  cancel();
  pool_.waitForDone();
}

int Loader::open(const QStringList& paths, const QStringList& names) {
  return start(paths, names, 0);
}

void Loader::reload(int id) {
  const Session::RunPointer run = session_.run(id);
  if (run && !run->path.empty())
    start({QString::fromStdString(run->path)}, {QString::fromStdString(run->name)}, id);
}

int Loader::start(const QStringList& paths, const QStringList& names, int replaced) {
  const int number = next_job_;
  return in_background([this, paths, names, replaced, number](Progress& progress) -> std::function<void()> {
    TakeBeginning take_beginning;
    if (paths.size() == 1 && replaced == 0)  // several can become one run
      take_beginning = [&](Timeline beginning) {
        auto run = std::make_shared<Run>(
            run_of({0, paths.front(), std::move(beginning), name_of(paths.front())}, names.value(0)));
        run->not_judged = "the trace is still being read";
        run->notes.emplace_back("The trace is still being read: this is its first part.");
        deliver(this, [this, number, run] { begin(number, std::move(*run)); });
      };
    std::vector<Read> all;
    std::vector<std::pair<QString, QString>> failures;
    for (const QString& path : paths) {
      try {
        all.push_back({all.size() + failures.size(), path,
                       read_timeline(path.toStdString(), progress, take_beginning), name_of(path)});
      } catch (const std::exception& error) {
        failures.emplace_back(path, QString::fromStdString(error.what()));
      }
    }
    auto runs = std::make_shared<std::vector<std::pair<std::size_t, Run>>>();
    for (Read& read : with_ranks_merged(std::move(all))) {
      const std::size_t place = read.place;
      runs->emplace_back(place, run_of(std::move(read), names.value(static_cast<int>(place))));
    }
    return [this, runs, failures, replaced, number, count = paths.size()] {
      std::vector<int> ids(static_cast<std::size_t>(count), 0);
      const int begun = run_begun_by(number);
      for (auto& [place, run] : *runs)
        if (begun >= 0) ids[place] = take(std::move(run), begun > 0 ? begun : replaced);
      for (const auto& [path, why] : failures) emit failed(path, why);
      emit finished(number, ids);
    };
  });
}

void Loader::open_results(const QString& path) {
  in_background([this, path](Progress& progress) -> std::function<void()> {
    try {
      auto results = std::make_shared<ResultFile>(read_results(path.toStdString(), progress));
      return [this, path, results] { emit results_read(path, results); };
    } catch (const std::exception& error) {
      return [this, path, why = QString::fromStdString(error.what())] { emit failed(path, why); };
    }
  });
}

void Loader::begin(int job, Run run) {
  if (jobs_.at(job)->cancelled) return;
  begun_[job] = session_.add(std::move(run));
  emit begun(begun_[job]);
}

int Loader::run_begun_by(int job) {
  const auto found = begun_.find(job);
  if (found == begun_.end()) return 0;
  const int run = session_.run(found->second) ? found->second : -1;
  begun_.erase(found);
  return run;
}

int Loader::take(Run run, int replaced) {
  int id = replaced;
  if (replaced != 0 && session_.run(replaced)) {
    run.id = replaced;
    session_.replace(std::move(run));
  } else {
    id = session_.add(std::move(run));
  }
  emit opened(id);
  const Session::RunPointer now = session_.run(id);
  if (now->not_judged.empty())
    judge_later(*now);
  else
    emit judged(id);
  return id;
}

void Loader::judge_later(const Run& run) {
  in_background(
      [this, id = run.id, path = run.path, timeline = run.timeline](Progress&) -> std::function<void()> {
        std::shared_ptr<const Judged> judgement;
        std::string why;
        RunFigures figures;
        std::vector<std::string> nodes;
        std::vector<double> capacities;
        try {
          judgement = judge(read_run(path));
          figures = figures_of(*timeline, *judgement);
          nodes = nodes_of(*timeline, *judgement);
          capacities = capacities_of(*timeline, *judgement);
        } catch (const std::exception& error) {
          why = error.what();
          judgement = nullptr;
        }
        return [this, id, timeline, judgement, why, figures, nodes, capacities] {
          const Session::RunPointer now = session_.run(id);
          if (!now || now->timeline != timeline) return;  // closed or reloaded in the meantime
          Run known = *now;
          known.judged = judgement;
          known.not_judged = why;
          if (judgement && !judgement->run.after_checkpoint) known.figures = figures;
          known.nodes = nodes;
          known.capacities = capacities;
          session_.replace(std::move(known));
          emit judged(id);
        };
      });
}

int Loader::in_background(std::function<std::function<void()>(Progress&)> work) {
  const int job = next_job_++;
  const auto progress = std::make_shared<Progress>();
  jobs_[job] = progress;
  if (jobs_.size() == 1) {
    ticks_.start();
    emit busy_changed(true);
  }
  run_on(pool_, this, [this, job, progress, work = std::move(work)]() -> std::function<void()> {
    std::function<void()> then;
    try {
      then = work(*progress);
    } catch (const Cancelled&) {
    }
    return [this, job, progress, then] {
      if (then && !progress->cancelled) then();
      if (const int left = run_begun_by(job); left > 0) session_.remove(left);
      jobs_.erase(job);
      if (!jobs_.empty()) return;
      ticks_.stop();
      emit busy_changed(false);
    };
  });
  return job;
}

double Loader::share() const {
  double sum = 0;
  for (const auto& [job, progress] : jobs_) sum += progress->share;
  return jobs_.empty() ? 1 : sum / static_cast<double>(jobs_.size());
}

void Loader::cancel() {
  for (const auto& [job, progress] : jobs_) progress->cancelled = true;
}

}  // namespace rehearse::gui
