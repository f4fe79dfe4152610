#include "gui/views/comparison/why_view.hpp"
#include "gui/models/runs/run_list.hpp"
#include "gui/models/scenario/scenario_difference.hpp"
#include "gui/views/comparison/advice_rows.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/placeholder.hpp"

#include <QAction>
#include <QApplication>
#include <QBoxLayout>
#include <QClipboard>
#include <QLabel>
#include <QScrollArea>
#include <QSettings>
#include <algorithm>
#include <sstream>

#include "gui/models/tables/value_table.hpp"
#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

constexpr int kNarrow = 760;  // pixels; in a narrower view, the sentences are above the bars
constexpr std::size_t kMostProblems = 12;
constexpr const char* kTriesAdvice = "tries_advice";  // key of the setting
constexpr const char* kParagraphs = "<style>p, ul { margin-top: 0; margin-bottom: 6px; }</style>";

QLabel* text_label(QWidget* parent, const QString& name) {
  auto* label = new QLabel(parent);
  label->setTextFormat(Qt::RichText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  label->setAccessibleName(name);
  label->setMinimumSize(120, 1);  // otherwise it would be as tall as when narrow
  return label;
}

QString escaped(const std::string& text) {
  return QString::fromStdString(text).toHtmlEscaped();
}

// Formats "Bottleneck: ..." as a paragraph with the part before the colon in bold. A colon after more than 30
// characters belongs to the sentence.
QString paragraph(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(": ");
  if (colon > 30) return "<p>" + escaped(text) + "</p>";
  return "<p><b>" + escaped(text.substr(0, colon + 1)) + "</b>" + escaped(text.substr(colon + 1)) + "</p>";
}

std::string memory_text(const Run& run) {
  if (run.judged)
    return memory_sentence(run.judged->result(),
                           AdviceTrials::can_try(run) ? AdviceTold::apart : AdviceTold::in_sentence);
  const MemoryUse& use = run.figures.memory;
  if (use.total <= 0) return "";
  if (use.capacity <= 0) return "Memory: " + in_gibibytes(use.total) + " GiB.";
  const std::string used = in_gibibytes(use.total) + " of " + in_gibibytes(use.capacity) + " GiB";
  return use.fits ? "Memory: " + used + " on the fullest device." : "Does not fit: " + used + " are needed.";
}

// Returns what the simulator's analyses report beyond the figures.
QString more_of(const Judged& judged) {
  const Result result = judged.result();
  QString text;
  const bool links_known = result.measured == nullptr || result.measured->executor == "emulated";
  if (links_known && !result.metrics.busiest_link.empty())
    text += paragraph("Busiest link: " + result.metrics.busiest_link + ", " +
                      in_percent(result.metrics.busiest_utilization) + " used.");
  if (result.measured != nullptr) {
    const Measurement& m = *result.measured;
    std::string how = m.executor;
    for (const std::string& part : {m.transport, m.processor, m.gpu, m.date})
      if (!part.empty()) how += ", " + part;
    text += paragraph("Measured: " + how + ".");
    for (const std::string& note : m.notes) text += paragraph("Note: " + note + ".");
  }
  return text;
}

// Returns the notes of a run: those that its trace states, which also tell frameworks that would fit.
const std::vector<std::string>& notes_of(const Run& run) {
  return run.notes.empty() && run.judged ? run.judged->run.plan.notes : run.notes;
}

// Formats a long duration: "39.9 days", "7.2 hours".
std::string days_text(double seconds) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  if (seconds >= kDay) return with_digits(seconds / kDay, 3) + " days";
  if (seconds >= kHour) return with_digits(seconds / kHour, 3) + " hours";
  return rehearse::TimeScale(seconds)(seconds);
}

}  // namespace

WhyView::WhyView(Session& session, ViewState&, QWidget* parent)
    : QWidget(parent), session_(session), trials_(session), seen_(this, [this] { tell_advice(); }) {
  setAccessibleName(tr("Why the step takes as long as it does"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  nothing_ = add_placeholder(*outer);

  scroll_ = new QScrollArea(this);
  scroll_->setAccessibleName(tr("Figures and sentences"));
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  outer->addWidget(scroll_);
  told_ = new QWidget;
  scroll_->setWidget(told_);
  auto* all = new QVBoxLayout(told_);
  all->setContentsMargins(12, 8, 12, 8);
  all->setSpacing(6);
  title_ = text_label(told_, tr("Run"));
  how_ = text_label(told_, tr("Strategy"));
  figures_ = text_label(told_, tr("Figures"));
  all->addWidget(title_);
  all->addWidget(how_);
  all->addWidget(figures_);

  columns_ = new QBoxLayout(QBoxLayout::LeftToRight);
  columns_->setSpacing(24);
  auto* bars = new QVBoxLayout;
  bars->setSpacing(4);
  bar_title_ = new QLabel(told_);
  path_title_ = new QLabel(tr("The critical path (the step cannot be shorter)"), told_);
  breakdown_ = new StackedBars(told_);
  breakdown_->setAccessibleName(tr("Parts of the step"));
  path_ = new StackedBars(told_);
  path_->setAccessibleName(tr("Parts of the critical path"));
  bars->addWidget(bar_title_);
  bars->addWidget(breakdown_);
  bars->addSpacing(8);
  bars->addWidget(path_title_);
  bars->addWidget(path_);
  bars->addStretch(1);
  columns_->addLayout(bars, 5);
  auto* sentences = new QVBoxLayout;
  sentences->setSpacing(6);
  cause_ = text_label(told_, tr("Largest cost"));
  advice_ = new AdviceRows(told_);
  sentences_ = text_label(told_, tr("Causes"));
  for (QLabel* label : {cause_, sentences_}) label->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  sentences->addWidget(cause_);
  sentences->addWidget(advice_);
  sentences->addWidget(sentences_, 1);
  columns_->addLayout(sentences, 4);
  all->addLayout(columns_, 1);

  add_command(*this,
              {menu::edit,
               tr("Copy the report of the run"),
               {QKeySequence("Ctrl+Shift+C")},
               tr("Copy the figures and sentences of the current run as text")},
              [this] { QApplication::clipboard()->setText(as_text()); });

  add_command(
      *this,
      {menu::trials,
       tr("&Try the first advice"),
       {QKeySequence("Ctrl+Alt+T")},
       tr("Open a run with the first change that is advised, and compare the two")},
      [this] { advice_->try_first(); }, Qt::WindowShortcut);
  tries_ = add_command(
      *this,
      {menu::trials,
       tr("Simulate &advice automatically"),
       {QKeySequence("Ctrl+Alt+A")},
       tr("Simulate the advice as soon as a run is viewed, at low priority")},
      [] {}, Qt::WindowShortcut);
  tries_->setCheckable(true);
  tries_->setChecked(QSettings().value(kTriesAdvice, true).toBool());
  connect(tries_, &QAction::toggled, this, [this](bool on) {
    QSettings().setValue(kTriesAdvice, on);
    tell_advice();
  });
  connect(advice_, &AdviceRows::try_requested, this, &WhyView::try_advice);
  connect(advice_, &AdviceRows::change_requested, this, &WhyView::put_in_form);
  connect(&trials_, &AdviceTrials::changed, this, [this](int run) {
    if (session_.current() && session_.current()->id == run) tell_advice();
  });

  connect(&session_, &Session::current_changed, this, &WhyView::tell);
  connect(&session_, &Session::runs_changed, this, &WhyView::tell);
  connect(&session_, &Session::run_changed, this, &WhyView::tell);
  tell();
}

void WhyView::tell() {
  const Session::RunPointer run = session_.current();
  const bool loading = run && !run->timeline;
  nothing_->setVisible(!run || loading);
  scroll_->setVisible(run && !loading);
  if (!run) {
    nothing_->setText(tr("No run is open. Open a trace, or run a scenario, to see the parts of its step."));
    return;
  }
  if (loading) {
    nothing_->setText(tr("%1 is being read.").arg(QString::fromStdString(run->name)));
    return;
  }
  const RunFigures& figures = run->figures;
  std::string title = run->name;
  QString how = run->source == Run::Source::profiler ? tr("profiled") : source_text(run->source);
  if (run->judged) {
    const Scenario& scenario = run->judged->run.scenario;
    title = scenario.model.title + " on " + scenario.cluster->title;
    how += ": " + escaped(strategy_line(scenario, *run->judged->run.plan.schedule));
  } else if (figures.devices > 0) {
    how += ": " + escaped(counted(figures.devices, "device"));
  }
  title_->setText("<span style='font-size:large; font-weight:600'>" + escaped(title) + "</span>");
  how_->setText(how);
  tell_figures(*run);

  breakdown_->set({breakdown_bar(figures)});
  const Bar path = path_bar(figures);
  bar_title_->setText(figures.steps > 1 && run->source == Run::Source::profiler
                          ? tr("Parts of a step, averaged over %1 steps and all devices").arg(figures.steps)
                          : tr("Parts of the step, averaged over devices"));
  bar_title_->setVisible(!figures.breakdown.empty());
  breakdown_->setVisible(!figures.breakdown.empty());
  path_->set({path});
  path_->setVisible(!path.parts.empty());
  path_title_->setVisible(!path.parts.empty());

  const std::string memory = memory_text(*run);
  QString cause;
  if (!figures.memory.fits) cause += paragraph(memory);  // at the top, because nothing else matters as much
  cause += paragraph(figures.bottleneck);
  cause_->setText(kParagraphs + cause);
  cause_->setVisible(!cause.isEmpty());
  seen_.changed();
  QString text = paragraph(figures.critical_path);
  if (figures.memory.fits) text += paragraph(memory);
  if (run->judged) text += more_of(*run->judged);
  for (const std::string& note : notes_of(*run)) text += paragraph("Note: " + note);
  if (!figures.cost.price.empty()) text += paragraph("Price: " + figures.cost.price + ".");
  if (!figures.rests_on.empty()) text += paragraph("Rests on: " + figures.rests_on + ".");
  if (!run->not_judged.empty()) text += paragraph("Not analysed: " + run->not_judged);
  const std::vector<std::string>& problems = run->timeline->problems;
  if (!problems.empty()) {
    text += "<p><b>" + tr("Problems found while reading:") + "</b></p><ul>";
    for (std::size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i)
      text += "<li>" + escaped(problems[i]) + "</li>";
    if (problems.size() > kMostProblems)
      text += "<li>" + tr("and %1 more").arg(problems.size() - kMostProblems) + "</li>";
    text += "</ul>";
  }
  sentences_->setText(kParagraphs + text);
  sentences_->setVisible(!text.isEmpty());
  place();
}

void WhyView::tell_figures(const Run& run) {
  const RunFigures& figures = run.figures;
  std::vector<std::pair<QString, QString>> told;
  const auto add = [&](bool known, const std::string& value, const QString& what) {
    if (known) told.emplace_back(QString::fromStdString(value), what);
  };
  const std::string unit = run.judged ? run.judged->run.scenario.model.sample_unit : "samples";
  const std::string noun =
      run.judged ? device_noun(run.judged->run.scenario.cluster->node().device) : "device";
  add(figures.step_time_s > 0, rehearse::TimeScale(figures.step_time_s)(figures.step_time_s), tr("per step"));
  add(figures.samples_per_s > 0, with_prefix(figures.samples_per_s), QString::fromStdString(unit) + "/s");
  add(figures.tokens_per_s > 0, with_prefix(figures.tokens_per_s), tr("tokens/s"));
  add(figures.tflops_per_device > 0, with_digits(figures.tflops_per_device, 3),
      tr("TFLOP/s per %1").arg(QString::fromStdString(noun)));
  add(figures.mfu > 0, in_percent(figures.mfu), tr("MFU"));
  const CostFigures& cost = figures.cost;
  const QString unit_of_training = QString::fromStdString(
      cost.tokens > 0 ? with_prefix(cost.tokens) + " tokens" : with_prefix(cost.samples) + ' ' + unit);
  add(cost.samples > 0, days_text(cost.seconds), tr("to %1").arg(unit_of_training));
  add(cost.device_hours > 0, with_prefix(cost.device_hours),
      tr("%1-hours").arg(QString::fromStdString(noun)));
  add(cost.money > 0, in_money(cost.money, cost.currency), tr("in total"));
  add(cost.samples <= 0 && cost.step_money > 0, in_money(cost.step_money, cost.currency), tr("per step"));
  QString values, names;
  for (const auto& [value, what] : told) {
    values += "<td style='padding-right:30px; font-size:x-large; font-weight:600'>" + value.toHtmlEscaped() +
              "</td>";
    names += "<td style='padding-right:30px'>" + what.toHtmlEscaped() + "</td>";
  }
  figures_->setText("<table cellspacing='0' cellpadding='0'><tr>" + values + "</tr><tr>" + names +
                    "</tr></table>");
  figures_->setVisible(!told.empty());
}

void WhyView::tell_advice() {
  const Session::RunPointer run = session_.current();
  if (!run || !AdviceTrials::can_try(*run)) return advice_->clear();
  if (tries_->isChecked() && isVisible()) trials_.try_all(run->id);
  advice_->show_trials(*run, trials_.of(run->id), tries_->isChecked());
}

void WhyView::set_tries_advice(bool tries) {
  tries_->setChecked(tries);
}

void WhyView::try_advice(int advice) {
  const Session::RunPointer run = session_.current();
  if (!run) return;
  const std::vector<AdviceTrial>& trials = trials_.of(run->id);
  if (advice < 0 || static_cast<std::size_t>(advice) >= trials.size()) return;
  const AdviceTrial trial = trials[static_cast<std::size_t>(advice)];
  const QString name = QString::fromStdString(run->name) + ", " + settings_name(trial.settings);
  const auto& runs = session_.runs();
  const auto open = std::find_if(runs.begin(), runs.end(), [&](const Session::RunPointer& other) {
    return trial.trace.isEmpty() ? other->name == name.toStdString()
                                 : other->path == trial.trace.toStdString();
  });
  if (open != runs.end()) {
    session_.set_current((*open)->id);
  } else if (trial.trace.isEmpty()) {
    emit run_requested(QString::fromStdString(run->scenario_text), name, trial.settings);
  } else {
    emit open_requested(trial.trace, name);
  }
  emit compare_requested();
}

void WhyView::put_in_form(int advice) {
  const Session::RunPointer run = session_.current();
  if (!run) return;
  const std::vector<AdviceTrial>& trials = trials_.of(run->id);
  if (advice < 0 || static_cast<std::size_t>(advice) >= trials.size()) return;
  emit change_requested(run->id, trials[static_cast<std::size_t>(advice)].settings);
}

QString WhyView::as_text() const {
  const Session::RunPointer run = session_.current();
  if (!run || !run->timeline) return {};
  std::ostringstream out;
  if (run->judged) {
    Plan plan = run->judged->run.plan;
    plan.notes = notes_of(*run);
    const Result result = run->judged->result();
    write_text({result.scenario, plan, result.trace, result.metrics, result.path, {}, result.measured}, out);
    return QString::fromStdString(out.str());
  }
  const RunFigures& figures = run->figures;
  out << run->name << "\n\n  step " << rehearse::TimeScale(figures.step_time_s)(figures.step_time_s)
      << "\n\n";
  for (const BreakdownPart& part : figures.breakdown)
    out << "  " << part.name << "  " << rehearse::TimeScale(figures.step_time_s)(part.seconds) << "  "
        << in_percent(part.seconds / figures.step_time_s) << '\n';
  out << '\n';
  for (const std::string& sentence : {figures.bottleneck, figures.critical_path, memory_text(*run)})
    if (!sentence.empty()) out << "  " << sentence << '\n';
  if (!figures.rests_on.empty()) out << "  Rests on: " << figures.rests_on << ".\n";
  return QString::fromStdString(out.str());
}

// A small window shows the sentences and the advice first.
void WhyView::place() {
  columns_->setDirection(width() < kNarrow ? QBoxLayout::BottomToTop : QBoxLayout::LeftToRight);
}

void WhyView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place();
}

void WhyView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) update();
}

}  // namespace rehearse::gui
