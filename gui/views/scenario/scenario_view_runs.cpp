// Keeps the form at the scenario of the current run, without losing changes.
#include <QAction>
#include <QApplication>
#include <algorithm>

#include "gui/models/scenario/scenario_difference.hpp"
#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"

namespace rehearse::gui {
namespace {

QString bold(const std::string& name) {
  return "<b>" + QString::fromStdString(name).toHtmlEscaped() + "</b>";
}

}  // namespace

void ScenarioView::follow_current() {
  const auto run = session_.current();
  if (run) {
    const bool arrived = run->id > newest_run_;
    newest_run_ = std::max(newest_run_, run->id);
    const Running made = made_.take(QString::fromStdString(run->path));
    if (made.draft) made.draft->set_run(run->id, made.text);
    if (!run->scenario_text.empty() && !keeps_shown(*run, arrived)) show_run(*run);
  }
  tell_run();
}

void ScenarioView::follow_changed(int id) {
  const auto run = session_.run(id);
  for (std::size_t i = 0; run && i < drafts_.size(); ++i) {
    if (drafts_[i]->run() != id || !drafts_[i]->only_repeats_run()) continue;
    const QString name = QString::fromStdString(run->name), text = QString::fromStdString(run->scenario_text);
    drafts_[i]->set_name(name);
    drafts_[i]->set_origin({name, drafts_[i]->text()});
    if (text.isEmpty() || text == drafts_[i]->text()) continue;
    auto again = std::make_unique<ScenarioDraft>(text, name);
    again->set_run(id, text);
    again->set_made_for_run();
    replace_draft(static_cast<int>(i), std::move(again));
  }
  tell_run();
}

// Changes of a run's scenario belong to that run, and show again when it is chosen again; so choosing another
// run leaves them. Changes of other scenarios stay in sight, and so does what the user is writing when a run
// arrives that was not asked for just now.
bool ScenarioView::keeps_shown(const Run& run, bool arrived) const {
  const ScenarioDraft& shown = draft();
  if (shown.run() == run.id) return true;
  const QWidget* focus = QApplication::focusWidget();
  if (arrived && (editor_->isAncestorOf(focus) || editor_ == focus || form_->isAncestorOf(focus)))
    return true;
  const bool unsaved = shown.is_modified() && shown.text() != shown.last_run();
  return unsaved && (arrived || !session_.run(shown.run()));
}

int ScenarioView::draft_of(const Run& run) {
  for (std::size_t i = 0; i < drafts_.size(); ++i)
    if (drafts_[i]->run() == run.id) return static_cast<int>(i);
  // Perhaps its file is open. Traces hold the scenario without its comments.
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    ScenarioDraft& draft = *drafts_[i];
    if (session_.run(draft.run()) ||
        !differences(QString::fromStdString(run.scenario_text), draft.text()).isEmpty())
      continue;
    draft.set_run(run.id, draft.text());
    return static_cast<int>(i);
  }
  return -1;
}

void ScenarioView::show_run(const Run& run) {
  form_->commit();
  int place = draft_of(run);
  if (place < 0) {
    const QString text = QString::fromStdString(run.scenario_text);
    auto draft = std::make_unique<ScenarioDraft>(text, QString::fromStdString(run.name));
    draft->set_run(run.id, text);
    draft->set_made_for_run();
    const auto free = std::find_if(drafts_.begin(), drafts_.end(),
                                   [](const auto& open) { return open->only_repeats_run(); });
    if (free == drafts_.end()) return add_draft(std::move(draft));
    place = static_cast<int>(free - drafts_.begin());
    replace_draft(place, std::move(draft));
  }
  tabs_->setCurrentIndex(place);
  tell_run();
}

void ScenarioView::take_run() {
  const auto run = session_.current();
  if (!run || run->scenario_text.empty()) return;
  if (draft().run() != run->id) return show_run(*run);
  form_->commit();
  draft().take_run();
  tell_run();
}

void ScenarioView::change_run(int id, const QStringList& settings) {
  const auto run = session_.run(id);
  if (!run || run->scenario_text.empty()) return;
  show_run(*run);
  draft().assign(settings);
}

void ScenarioView::tell_run() {
  const auto run = session_.current();
  const auto shown = session_.run(draft().run());
  const bool changed = !draft().is_as_run();
  QString text;
  if (!run)
    text.clear();
  else if (run->scenario_text.empty())
    text =
        bold(run->name) + " has no scenario: " +
        (run->source == Run::Source::profiler ? "another program wrote its trace" : "its trace names none");
  else if (shown != run)
    text = "Not the scenario of run " + bold(run->name);
  else
    text = (changed ? "Changed from the scenario of run " : "Scenario of run ") + bold(run->name);
  if (run && shown && shown != run)
    text += QString("; %1 that of %2").arg(changed ? "changed from" : "this is", bold(shown->name));
  whose_->setText(text);
  whose_row_->setVisible(run != nullptr);
  take_->setEnabled(run && !run->scenario_text.empty() && (shown != run || changed));
}

}  // namespace rehearse::gui
