// Manages the drafts of the scenario view: opening, saving, closing, and storing them in a session.
#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QRegularExpression>
#include <algorithm>

#include "gui/views/scenario/scenario_editor.hpp"
#include "gui/views/scenario/scenario_form.hpp"
#include "gui/views/scenario/scenario_view.hpp"

namespace rehearse::gui {
namespace {

constexpr int kMostTabPixels = 160;      // greatest width of a name in a tab
constexpr std::size_t kMostClosed = 20;  // drafts that can be reopened

}  // namespace

void ScenarioView::connect_draft(ScenarioDraft& draft) {
  connect(&draft, &ScenarioDraft::text_changed, this, &ScenarioView::check_draft);
  connect(&draft, &ScenarioDraft::modified_changed, this, &ScenarioView::tell_drafts);
  connect(&draft, &ScenarioDraft::name_changed, this, &ScenarioView::tell_drafts);
  for (const auto signal : {&QTextDocument::undoAvailable, &QTextDocument::redoAvailable})
    connect(&draft.document(), signal, this, &ScenarioView::follow_undo);
}

void ScenarioView::add_draft(std::unique_ptr<ScenarioDraft> draft) {
  // The new draft replaces the first one if that is untouched.
  const bool replace = has_only_template();
  connect_draft(*draft);
  drafts_.push_back(std::move(draft));
  tabs_->addTab("");
  tell_drafts();
  tabs_->setCurrentIndex(tabs_->count() - 1);
  show_draft(tabs_->currentIndex());
  if (replace) close_draft(0);
}

void ScenarioView::replace_draft(int place, std::unique_ptr<ScenarioDraft> draft) {
  connect_draft(*draft);
  std::swap(drafts_[static_cast<std::size_t>(place)], draft);
  if (place == current_) show_draft(place);  // the editor and the form still refer to the other one
  draft->disconnect(this);
  draft->document().disconnect(this);
  tell_drafts();
}

bool ScenarioView::draft_is_untouched() const {
  const ScenarioDraft& first = *drafts_.front();
  return first.path().isEmpty() && !first.is_modified() && first.text() == new_scenario_text();
}

void ScenarioView::show_draft(int place) {
  if (place < 0 || place >= static_cast<int>(drafts_.size())) return;
  if (current_ >= 0 && current_ < static_cast<int>(drafts_.size())) form_->commit();
  current_ = place;
  editor_->set_draft(draft());
  form_->set_draft(draft());
  follow_undo();
  show_error(0, 0, {});
  told_->clear();
  check_draft();
  check_.check_now();
}

void ScenarioView::close_draft(int place) {
  if (place < 0 || place >= static_cast<int>(drafts_.size())) return;
  if (drafts_.size() == 1) {
    if (draft_is_untouched()) return;
    // The window always has a draft.
    auto fresh = std::make_unique<ScenarioDraft>(new_scenario_text(), "untitled");
    add_draft(std::move(fresh));
    if (drafts_.size() == 1) return;
  }
  // Show another draft first, because the editor and the form must not refer to a deleted one.
  if (place == current_) tabs_->setCurrentIndex(place + 1 < tabs_->count() ? place + 1 : place - 1);
  std::unique_ptr<ScenarioDraft> closed = std::move(drafts_[static_cast<std::size_t>(place)]);
  closed->disconnect(this);
  closed->document().disconnect(this);
  drafts_.erase(drafts_.begin() + place);
  if (current_ > place) --current_;
  const QSignalBlocker quiet(tabs_);
  tabs_->removeTab(place);
  tabs_->setCurrentIndex(current_);
  if (closed->is_modified() || !closed->path().isEmpty() || closed->text() != new_scenario_text())
    closed_.push_back(std::move(closed));
  if (closed_.size() > kMostClosed) closed_.erase(closed_.begin());
  tell_drafts();
}

void ScenarioView::ask_and_close(int place) {
  form_->commit();
  if (place < 0 || place >= static_cast<int>(drafts_.size())) return;
  if (drafts_[static_cast<std::size_t>(place)]->is_modified() && !ask_about({place})) return;
  close_draft(place);
}

bool ScenarioView::may_leave() {
  form_->commit();
  std::vector<int> places;
  for (std::size_t i = 0; i < drafts_.size(); ++i)
    if (drafts_[i]->is_at_risk()) places.push_back(static_cast<int>(i));
  return places.empty() || ask_about(places);
}

bool ScenarioView::ask_about(const std::vector<int>& places) {
  QStringList names;
  for (const int place : places) names << drafts_[static_cast<std::size_t>(place)]->name();
  switch (ask_(names)) {
    case Unsaved::cancel:
      return false;
    case Unsaved::discard:
      return true;
    case Unsaved::save:
      break;
  }
  for (const int place : places) {
    tabs_->setCurrentIndex(place);  // shows the scenario that the save dialog asks about
    if (!save_current()) return false;
  }
  return true;
}

void ScenarioView::reopen() {
  if (closed_.empty()) return;
  std::unique_ptr<ScenarioDraft> draft = std::move(closed_.back());
  closed_.pop_back();
  add_draft(std::move(draft));
}

void ScenarioView::tell_drafts() {
  for (int i = 0; i < tabs_->count() && i < static_cast<int>(drafts_.size()); ++i) {
    const ScenarioDraft& draft = *drafts_[static_cast<std::size_t>(i)];
    QString name = tabs_->fontMetrics().elidedText(draft.name(), Qt::ElideMiddle, kMostTabPixels);
    tabs_->setTabText(i, name.replace('&', "&&") + (draft.is_modified() ? " *" : ""));
    tabs_->setTabToolTip(i, draft.path().isEmpty() ? draft.name() + ", not saved to a file" : draft.path());
  }
  reopen_->setEnabled(!closed_.empty());
}

bool ScenarioView::has_unsaved_changes() const {
  return std::any_of(drafts_.begin(), drafts_.end(), [](const auto& draft) { return draft->is_modified(); });
}

// Appends " (2)" or a higher number if the name is taken, either by a draft or by a run, finished or not.
QString ScenarioView::unused_name(const QString& name, bool of_runs) const {
  const auto is_used = [&](const QString& candidate) {
    if (!of_runs)
      return std::any_of(drafts_.begin(), drafts_.end(),
                         [&](const auto& d) { return d->name() == candidate; });
    return std::any_of(running_.begin(), running_.end(),
                       [&](const Running& r) { return r.name == candidate; }) ||
           std::any_of(session_.runs().begin(), session_.runs().end(),
                       [&](const auto& run) { return run->name == candidate.toStdString(); });
  };
  static const QRegularExpression kNumber(R"( \(\d+\)$)");
  QString stem = name;
  stem.remove(kNumber);
  QString candidate = name;
  for (int i = 2; is_used(candidate); ++i) candidate = stem + QString(" (%1)").arg(i);
  return candidate;
}

void ScenarioView::new_draft() {
  add_draft(std::make_unique<ScenarioDraft>(new_scenario_text(), unused_name("untitled", false)));
}

void ScenarioView::open_scenario(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  for (std::size_t i = 0; i < drafts_.size(); ++i)
    if (drafts_[i]->path() == absolute) return tabs_->setCurrentIndex(static_cast<int>(i));
  auto draft = std::make_unique<ScenarioDraft>("", "");
  if (const QString why = draft->load(absolute); !why.isEmpty()) return emit message(why);
  add_draft(std::move(draft));
}

void ScenarioView::set_text(const QString& text, const QString& name, const QString& folder) {
  auto draft = std::make_unique<ScenarioDraft>(text, unused_name(name, false));
  draft->set_folder(folder);
  draft->set_origin({name, text});
  add_draft(std::move(draft));
}

void ScenarioView::duplicate_run(int id) {
  const auto run = session_.run(id);
  if (!run) return;
  const QString name = QString::fromStdString(run->name), text = QString::fromStdString(run->scenario_text);
  if (text.isEmpty()) return emit message(QString("The scenario of %1 is unknown").arg(name));
  set_text(text, name);
}

void ScenarioView::duplicate_current() {
  if (const auto run = session_.current()) duplicate_run(run->id);
}

void ScenarioView::choose_file() {
  const QString path = QFileDialog::getOpenFileName(this, "Open a scenario", draft().folder(),
                                                    "Scenarios (*.toml);;All files (*)");
  if (!path.isEmpty()) open_scenario(path);
}

bool ScenarioView::save_current() {
  if (draft().path().isEmpty()) return save_current_as();
  form_->commit();
  return tell_saved(draft().path(), draft().save(draft().path()));
}

bool ScenarioView::save_current_as() {
  form_->commit();
  const QString first =
      draft().path().isEmpty() ? QDir(draft().folder()).filePath(draft().name() + ".toml") : draft().path();
  QString path =
      QFileDialog::getSaveFileName(this, "Save the scenario " + draft().name(), first, "Scenarios (*.toml)");
  if (path.isEmpty()) return false;
  if (QFileInfo(path).suffix().isEmpty()) path += ".toml";
  const bool saved = tell_saved(path, draft().save(path));
  check_draft();  // relative file names in it now start elsewhere
  return saved;
}

bool ScenarioView::tell_saved(const QString& path, const QString& why_not) {
  emit message(why_not.isEmpty() ? QString("Saved %1").arg(path) : why_not);
  return why_not.isEmpty();
}

// ----- sessions

std::vector<SavedDraft> ScenarioView::saved_drafts() {
  form_->commit();
  std::vector<SavedDraft> saved;
  if (has_only_template()) return saved;
  for (const auto& draft : drafts_) {
    if (draft->only_repeats_run()) continue;
    SavedDraft& one = saved.emplace_back();
    one.path = draft->path().toStdString();
    one.name = draft->name().toStdString();
    if (draft->path().isEmpty()) one.folder = draft->folder().toStdString();
    if (draft->path().isEmpty() || draft->is_modified()) one.text = draft->text().toStdString();
  }
  return saved;
}

int ScenarioView::current_draft() const {
  if (has_only_template() || draft().only_repeats_run()) return -1;
  return static_cast<int>(std::count_if(drafts_.begin(), drafts_.begin() + current_,
                                        [](const auto& draft) { return !draft->only_repeats_run(); }));
}

void ScenarioView::keep_drafts() {
  for (const auto& draft : drafts_) draft->keep();
}

QStringList ScenarioView::restore_drafts(const std::vector<SavedDraft>& saved, int current) {
  // The first restored draft replaces an untouched one.
  const std::size_t before = has_only_template() ? 0 : drafts_.size();
  QStringList refused;
  int restored = 0, shown = -1;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const SavedDraft& from = saved[i];
    const QString path = QString::fromStdString(from.path);
    auto draft = std::make_unique<ScenarioDraft>("", QString::fromStdString(from.name));
    if (from.text) {
      draft->restore(path, QString::fromStdString(from.folder), QString::fromStdString(*from.text));
    } else if (const QString why_not = draft->load(path); !why_not.isEmpty()) {
      refused << why_not;
      continue;
    }
    if (static_cast<int>(i) == current) shown = restored;
    ++restored;
    add_draft(std::move(draft));
  }
  if (restored == 0 && before > 0) new_draft();
  for (std::size_t i = 0; i < before; ++i) close_draft(0);
  if (shown >= 0) tabs_->setCurrentIndex(shown);
  restored_ = shown >= 0 ? &draft() : nullptr;
  return refused;
}

void ScenarioView::show_restored() {
  const auto of = std::find_if(drafts_.begin(), drafts_.end(),
                               [&](const auto& draft) { return draft.get() == restored_; });
  const auto run = session_.current();
  if (restored_ && of != drafts_.end())
    tabs_->setCurrentIndex(static_cast<int>(of - drafts_.begin()));
  else if (run && !run->scenario_text.empty())
    show_run(*run);
}

}  // namespace rehearse::gui
