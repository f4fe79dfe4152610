#include "gui/models/comparison/advice_trials.hpp"

#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>
#include <cmath>

#include "gui/models/scenario/scenario_difference.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr double kSame = 0.002;  // relative change of the step time below which it counts as unchanged

bool trains_as_much(const Run& run, const AdviceTrial& trial) {
  const double now = run.figures.samples_per_s * run.figures.step_time_s,
               then = trial.samples_per_s * trial.step_time_s;
  return std::abs(then - now) <= 1e-6 * now;
}

// Time per sample as a fraction of the run's; 0 if the trial has no throughput.
double relative_time(const Run& run, const AdviceTrial& trial) {
  return trial.samples_per_s > 0 ? run.figures.samples_per_s / trial.samples_per_s : 0;
}

void read_figures(const QByteArray& text, AdviceTrial& trial) {
  const QJsonObject json = QJsonDocument::fromJson(text).object();
  trial.step_time_s = json["step_time_s"].toDouble();
  trial.samples_per_s = json["samples_per_s"].toDouble();
  const QJsonObject memory = json["memory_bytes"].toObject();
  trial.memory.total = memory["total"].toDouble();
  trial.memory.capacity = memory["capacity"].toDouble();
  trial.memory.fits = memory["fits"].toBool(true);
}

constexpr std::size_t kMostRecorded = 4;  // changes that a trace tells

std::vector<AdviceTrial> trials_of(const Run& run) {
  std::vector<AdviceTrial> trials;
  for (const TriedRemedy& remedy : run.remedies) {
    if (trials.size() == kMostRecorded) break;
    AdviceTrial& trial = trials.emplace_back();
    trial.state = AdviceTrial::State::done;
    trial.advice = {remedy.why, remedy.sets};
    trial.step_time_s = remedy.step_time_s;
    trial.samples_per_s = remedy.samples_per_s;
    trial.memory.total = remedy.memory_bytes;
    trial.memory.capacity = run.figures.memory.capacity;
    trial.memory.fits = !(trial.memory.capacity > 0) || trial.memory.total <= trial.memory.capacity;
  }
  for (const Advice& advice : run.figures.advice) {
    const auto known = std::find_if(trials.begin(), trials.end(), [&](const AdviceTrial& trial) {
      return trial.advice.sets == advice.sets;
    });
    (known == trials.end() ? trials.emplace_back() : *known).advice = advice;
  }
  for (AdviceTrial& trial : trials) trial.settings = settings_of(trial.advice.sets);
  return trials;
}

QString memory_of(const MemoryUse& memory) {
  return QString::fromStdString(in_gibibytes(memory.total) + " of " + in_gibibytes(memory.capacity) + " GiB");
}

}  // namespace

QString outcome_text(const Run& run, const AdviceTrial& trial) {
  switch (trial.state) {
    case AdviceTrial::State::untried:
    case AdviceTrial::State::waiting:
      return {};
    case AdviceTrial::State::failed:
      return QObject::tr("cannot be simulated: %1").arg(trial.error);
    case AdviceTrial::State::done:
      break;
  }
  QString text = QObject::tr("%1 a step")
                     .arg(QString::fromStdString(rehearse::TimeScale(trial.step_time_s)(trial.step_time_s)));
  const double change = relative_time(run, trial) - 1;
  text += std::abs(change) < kSame ? QObject::tr(", unchanged")
                                   : ", " + QString::fromStdString(in_percent(std::abs(change))) +
                                         (change < 0 ? QObject::tr(" less") : QObject::tr(" more"));
  if (!trains_as_much(run, trial)) text += QObject::tr(" per sample");
  if (!trial.memory.fits)
    text += QObject::tr("; does not fit: %1").arg(memory_of(trial.memory));
  else if (!run.figures.memory.fits)
    text += QObject::tr("; fits: %1").arg(memory_of(trial.memory));
  return text;
}

Verdict verdict_on(const Run& run, const AdviceTrial& trial) {
  if (trial.state == AdviceTrial::State::failed) return Verdict::worse;
  if (trial.state != AdviceTrial::State::done) return Verdict::unknown;
  if (run.figures.memory.fits != trial.memory.fits)
    return trial.memory.fits ? Verdict::better : Verdict::worse;
  const double change = relative_time(run, trial) - 1;
  return std::abs(change) < kSame ? Verdict::same : change < 0 ? Verdict::better : Verdict::worse;
}

AdviceTrials::AdviceTrials(Session& session, QObject* parent) : QObject(parent), session_(session) {
  runner_.set_low_priority(true);
  connect(&runner_, &CommandRunner::finished, this, &AdviceTrials::take);
  connect(&session_, &Session::runs_changed, this, &AdviceTrials::follow_runs);
}

bool AdviceTrials::can_try(const Run& run) {
  return run.source == Run::Source::predicted && !run.scenario_text.empty() &&
         !(run.figures.advice.empty() && run.remedies.empty());
}

AdviceTrials::Tried& AdviceTrials::tried(int id) {
  Tried& known = runs_[id];
  const Session::RunPointer run = session_.run(id);
  const bool can = run && can_try(*run);
  std::vector<AdviceTrial> trials = can ? trials_of(*run) : std::vector<AdviceTrial>{};
  const bool same = std::equal(known.trials.begin(), known.trials.end(), trials.begin(), trials.end(),
                               [](const AdviceTrial& a, const AdviceTrial& b) {
                                 return a.advice.sets == b.advice.sets && a.advice.why == b.advice.why;
                               }) &&
                    (!can || known.capacity == run->figures.memory.capacity);
  if (same) return known;
  drop(known);
  known = {std::move(trials), {}, can ? run->figures.memory.capacity : 0};
  known.ids.resize(known.trials.size(), 0);
  return known;
}

const std::vector<AdviceTrial>& AdviceTrials::of(int id) {
  return tried(id).trials;
}

void AdviceTrials::try_all(int id) {
  const Session::RunPointer run = session_.run(id);
  if (!run) return;
  Tried& known = tried(id);
  for (std::size_t i = 0; i < known.trials.size(); ++i) {
    AdviceTrial& trial = known.trials[i];
    if (trial.state != AdviceTrial::State::untried) continue;
    trial.state = AdviceTrial::State::waiting;
    RunRequest request{QString::fromStdString(run->scenario_text), settings_name(trial.settings), {}};
    request.settings = trial.settings;
    known.ids[i] = runner_.start(request);
  }
}

void AdviceTrials::drop(Tried& known) {
  const std::vector<int> ids = known.ids;
  known.ids.assign(ids.size(), 0);  // cleared first, so that take() ignores the cancelled trials
  for (const int id : ids)
    if (id != 0) runner_.cancel(id);
}

void AdviceTrials::follow_runs() {
  for (auto at = runs_.begin(); at != runs_.end();) {
    const auto run = at++;
    if (session_.run(run->first)) continue;
    auto gone = runs_.extract(run);
    drop(gone.mapped());
  }
}

void AdviceTrials::take(const RunOutcome& outcome) {
  for (auto& [run, known] : runs_) {
    const auto id = std::find(known.ids.begin(), known.ids.end(), outcome.id);
    if (id == known.ids.end()) continue;
    *id = 0;
    AdviceTrial& trial = known.trials[static_cast<std::size_t>(id - known.ids.begin())];
    switch (outcome.kind) {
      case RunOutcome::Kind::done:
        read_figures(outcome.json, trial);
        trial.state = AdviceTrial::State::done;
        trial.trace = outcome.path;
        break;
      case RunOutcome::Kind::failed:
        trial.state = AdviceTrial::State::failed;
        trial.error = outcome.error;
        break;
      case RunOutcome::Kind::cancelled:
        trial.state = AdviceTrial::State::untried;
        break;
    }
    emit changed(run);
    return;
  }
}

}  // namespace rehearse::gui
