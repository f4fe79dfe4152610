#include "gui/views/tables/plan_view.hpp"

#include <fmt/format.h>

#include <QAction>
#include <QBoxLayout>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QSplitter>
#include <QToolButton>
#include <algorithm>
#include <filesystem>

#include "gui/models/tables/plan_words.hpp"
#include "gui/views/parts/choose_file.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/export.hpp"
#include "gui/views/parts/placeholder.hpp"
#include "gui/views/tables/plan_coordinates.hpp"
#include "gui/views/tables/plan_scatter.hpp"
#include "models/text/error.hpp"

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostAtOnce = 8;  // plans that can be run and compared at once

QToolButton* button_of(QAction& action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(&action);
  button->setAccessibleName(action.text().remove('&'));
  return button;
}

void copy_into(const std::filesystem::path& folder, const std::string& from) {
  const std::filesystem::path to = folder / std::filesystem::path(from).filename();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && std::filesystem::equivalent(from, to, error)) return;
  error.clear();
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) throw RunError(fmt::format("{}: cannot be written: {}", to.string(), error.message()));
}

}  // namespace

PlanView::PlanView(Session&, ViewState&, QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Plans"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(0);
  searching_ = new QWidget(this);
  auto* searching = new QHBoxLayout(searching_);
  searching->setContentsMargins(6, 3, 6, 3);
  progress_ = new QLabel(searching_);
  progress_->setAccessibleName(tr("Progress of the search"));
  progress_->setTextFormat(Qt::PlainText);
  progress_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  auto* cancel = new QToolButton(searching_);
  cancel->setText(tr("Cancel the search"));
  cancel->setToolTip(tr("End the search for plans"));
  connect(cancel, &QToolButton::clicked, this, &PlanView::cancel_requested);
  searching->addWidget(progress_, 1);
  searching->addWidget(cancel);
  searching_->hide();
  outer->addWidget(searching_);
  nothing_ = add_placeholder(
      *outer, tr("Choose \"Find the best plan\" in the Run menu to search for the best parallelization of "
                 "the scenario,\n"
                 "or open the file that rehearse plan SCENARIO --out FOLDER writes: FOLDER/plan.json"));
  told_ = new QWidget(this);
  outer->addWidget(told_, 1);
  auto* all = new QVBoxLayout(told_);
  all->setContentsMargins(4, 4, 4, 4);
  all->setSpacing(4);
  make_commands();
  make_head(*all);
  make_plots(*all);
  told_->hide();
}

QAction* PlanView::make_switch(const QString& text, const QString& short_text, const QString& key,
                               const QString& tip) {
  QAction* action = add_command(*this, {menu::plots, text, {QKeySequence(key)}, tip}, [] {});
  action->setIconText(short_text);
  action->setCheckable(true);
  connect(action, &QAction::toggled, this, &PlanView::apply_filter);
  return action;
}

void PlanView::make_commands() {
  add_command(
      *this,
      {menu::results, tr("Open plans..."), {QKeySequence("Ctrl+Shift+L")}, tr("Open the file of a search")},
      [this] {
        choose_file(*this, tr("file of plans"), tr("Plans (*.json);;All files (*)"),
                    [this](const QString& path) { emit open_requested(path); });
      });
  save_ = add_command(*this,
                      {menu::results,
                       tr("Save plans..."),
                       {QKeySequence("Ctrl+Shift+K")},
                       tr("Write the file of the search and the plans' scenarios into a folder")},
                      [this] { choose_folder(); });
  open_ = add_command(*this,
                      {menu::run,
                       tr("Open plans as timelines"),
                       {QKeySequence("Ctrl+Return")},
                       tr("Simulate the selected plans and show them as runs side by side")},
                      [this] { open_chosen(); });
  change_ = add_command(*this,
                        {menu::edit,
                         tr("Change the plan's scenario"),
                         {QKeySequence("Ctrl+Shift+D")},
                         tr("Open the scenario of the selected plan in the form")},
                        [this] { change_chosen(); });
  fits_ = make_switch(tr("Only plans that fit"), tr("Fit"), tr("Alt+1"),
                      tr("Show only plans that fit into the devices' memory"));
  simulated_ = make_switch(tr("Only simulated plans"), tr("Simulated"), tr("Alt+2"),
                           tr("Show only plans that were simulated"));
  pareto_ = make_switch(tr("Only Pareto-optimal plans"), tr("Pareto"), tr("Alt+3"),
                        tr("Show only plans that no other plan beats in every objective"));
  clear_ = add_command(*this,
                       {menu::plots,
                        tr("Show all plans"),
                        {QKeySequence("Alt+0")},
                        tr("Clear the filters and show all plans")},
                       [this] { clear_filter(); });
  tell_more_ = add_command(*this,
                           {menu::plots,
                            tr("Details of the search"),
                            {QKeySequence("Alt+M")},
                            tr("Show what was ruled out, and what to measure where plans are close")},
                           [] {});
  tell_more_->setIconText(tr("Details"));
  tell_more_->setCheckable(true);
  open_->setIconText(tr("Open as timelines"));
  change_->setIconText(tr("Change"));
  clear_->setIconText(tr("All"));
  for (QAction* action : {open_, change_, save_}) action->setEnabled(false);
}

void PlanView::make_head(QBoxLayout& into) {
  summary_ = new QLabel(told_);
  summary_->setAccessibleName(tr("Result of the search"));
  summary_->setWordWrap(true);
  summary_->setTextFormat(Qt::PlainText);
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  into.addWidget(summary_);
  auto* head = new QHBoxLayout;
  auto* label = new QLabel(tr("Fi&lter"), told_);
  filter_ = new QLineEdit(told_);
  filter_->setAccessibleName(tr("Filter of the plans"));
  leave_out_of_pictures(*filter_);
  filter_->setPlaceholderText(tr("words, tensor>=4"));
  filter_->setToolTip(
      tr("Show only rows with these words and comparisons, for example: interleaved tensor>=4 memory<70"));
  filter_->setClearButtonEnabled(true);
  filter_->setMinimumWidth(120);
  filter_->setMaximumWidth(320);
  label->setBuddy(filter_);
  connect(filter_, &QLineEdit::textChanged, this, &PlanView::apply_filter);
  head->addWidget(label);
  head->addWidget(filter_, 1);
  for (QAction* action : {fits_, simulated_, pareto_, clear_}) head->addWidget(button_of(*action, told_));
  count_ = new QLabel(told_);
  count_->setAccessibleName(tr("Number of plans shown"));
  head->addWidget(count_);
  head->addStretch(1);
  for (QAction* action : {tell_more_, change_, open_}) head->addWidget(button_of(*action, told_));
  into.addLayout(head);
}

void PlanView::make_plots(QBoxLayout& into) {
  split_ = new QSplitter(Qt::Vertical, told_);
  split_->setChildrenCollapsible(false);
  plots_ = new QSplitter(Qt::Horizontal, split_);
  plots_->setChildrenCollapsible(false);
  scatter_ = new PlanScatter(plots_);
  coordinates_ = new PlanCoordinates(plots_);
  plots_->addWidget(scatter_);
  plots_->addWidget(coordinates_);
  plots_->setStretchFactor(0, 2);
  plots_->setStretchFactor(1, 3);
  auto* below = new QSplitter(Qt::Horizontal, split_);
  below->setChildrenCollapsible(false);
  rows_ = new TableView(below);
  rows_->setAccessibleName(tr("Table of the plans"));
  details_ = new QPlainTextEdit(below);
  details_->setAccessibleName(tr("Details of the search"));
  details_->setReadOnly(true);
  details_->hide();
  connect(tell_more_, &QAction::toggled, details_, &QWidget::setVisible);
  below->addWidget(rows_);
  below->addWidget(details_);
  below->setStretchFactor(0, 3);
  below->setStretchFactor(1, 2);
  split_->addWidget(plots_);
  split_->addWidget(below);
  split_->setStretchFactor(0, 3);
  split_->setStretchFactor(1, 2);
  into.addWidget(split_, 1);
  setFocusProxy(rows_);
  connect(rows_, &TableView::selection_changed, this, &PlanView::follow_selection);
  connect(rows_, &TableView::row_activated, this, &PlanView::open_chosen);
  connect(scatter_, &PlanScatter::picked, this, &PlanView::pick);
  connect(scatter_, &PlanScatter::activated, this, &PlanView::open_chosen);
  connect(coordinates_, &PlanCoordinates::picked, this, &PlanView::pick);
  connect(coordinates_, &PlanCoordinates::activated, this, &PlanView::open_chosen);
  connect(coordinates_, &PlanCoordinates::ranges_changed, this, &PlanView::apply_filter);
}

void PlanView::show_plans(const QString& path, ReadPlans read, const QString& title) {
  path_ = path;
  file_ = std::make_shared<const PlanFile>(std::move(read.plans));
  title_ = title.isEmpty() ? QString::fromStdString(file_->scenario) : title;
  data_ = std::move(read.rows);
  rows_->show_only({});
  rows_->set(data_);
  scatter_->show_plans(file_);
  coordinates_->show_plans(file_, std::move(read.axes));
  save_->setEnabled(true);
  nothing_->hide();
  told_->show();
  tell_search();
  clear_filter();
  if (!file_->plans.empty()) rows_->select_row(0);
}

void PlanView::show_progress(const QString& text) {
  progress_->setText(text);
  progress_->setToolTip(text);
  searching_->setVisible(!text.isEmpty());
}

void PlanView::tell_search() {
  summary_->setText(result_sentence(*file_, title_));
  QStringList lines = search_sentences(*file_);
  for (const PlanDecision& decision : file_->decisions) {
    lines << QString::fromStdString(decision.sentence);
    for (const std::string& command : decision.measure) lines << "    " + QString::fromStdString(command);
  }
  details_->setPlainText(lines.join('\n'));
  tell_more_->setChecked(false);
  tell_more_->setEnabled(!lines.isEmpty());
}

// ----- displayed plans

void PlanView::apply_filter() {
  PlanFilter filter;
  filter.text = filter_->text();
  filter.fits = fits_->isChecked();
  filter.simulated = simulated_->isChecked();
  filter.pareto = pareto_->isChecked();
  shown_ = matching(*file_, data_, filter);
  for (std::size_t i = 0; i < shown_.size(); ++i)
    shown_[i] = shown_[i] && within(coordinates_->axes(), i, coordinates_->ranges());
  rows_->show_only(shown_);
  scatter_->set_shown(shown_);
  coordinates_->set_shown(shown_);
  const auto left = std::count(shown_.begin(), shown_.end(), true);
  count_->setText(tr("%1 of %2").arg(left).arg(shown_.size()));
  clear_->setEnabled(left < static_cast<std::ptrdiff_t>(shown_.size()));
  follow_selection();
}

void PlanView::clear_filter() {
  {
    const QSignalBlocker quiet_field(filter_), quiet_axes(coordinates_), quiet_fits(fits_),
        quiet_simulated(simulated_), quiet_pareto(pareto_);
    filter_->clear();
    for (QAction* action : {fits_, simulated_, pareto_}) action->setChecked(false);
    coordinates_->set_ranges({});
  }
  for (QToolButton* button : told_->findChildren<QToolButton*>())
    if (QAction* action = button->defaultAction(); action != nullptr && action->isCheckable())
      button->setChecked(action->isChecked());  // the buttons' signals were blocked
  apply_filter();
}

void PlanView::follow_selection() {
  std::vector<std::size_t> plans;
  for (const int row : rows_->selected_rows()) plans.push_back(static_cast<std::size_t>(row));
  // Put the current plan last, because keys move on from it.
  const auto current = std::find(plans.begin(), plans.end(), static_cast<std::size_t>(rows_->current_row()));
  if (current != plans.end()) std::rotate(current, current + 1, plans.end());
  const bool can_run = std::any_of(plans.begin(), plans.end(),
                                   [&](std::size_t plan) { return !file_->plans[plan].file.empty(); });
  open_->setEnabled(can_run);
  change_->setEnabled(can_run);
  scatter_->set_selected(plans);
  coordinates_->set_selected(std::move(plans));
}

void PlanView::pick(std::size_t plan, bool beside_others) {
  if (beside_others)
    rows_->toggle_row(static_cast<int>(plan));
  else
    rows_->select_row(static_cast<int>(plan));
}

// ----- actions on plans

std::vector<PlanScenario> PlanView::chosen() {
  std::vector<PlanScenario> scenarios;
  QStringList without;
  for (const int row : rows_->selected_rows()) {
    const auto plan = static_cast<std::size_t>(row);
    const QString label = label_of(*file_, plan);
    if (file_->plans[plan].file.empty())
      without << label;
    else
      scenarios.push_back({QString::fromStdString(file_->plans[plan].file), title_ + ", " + label});
  }
  if (!without.isEmpty()) emit message(tr("The file has no scenario for: %1").arg(without.join(", ")));
  return scenarios;
}

void PlanView::open_chosen() {
  std::vector<PlanScenario> scenarios = chosen();
  if (scenarios.size() > kMostAtOnce) {
    emit message(
        tr("%1 plans are selected; allowed: at most %2 at once").arg(scenarios.size()).arg(kMostAtOnce));
    return;
  }
  if (!scenarios.empty()) emit run_requested(scenarios);
}

void PlanView::change_chosen() {
  const std::vector<PlanScenario> scenarios = chosen();
  if (!scenarios.empty()) emit change_requested(scenarios.front());
}

void PlanView::save_plans(const QString& folder) {
  copy_into(folder.toStdString(), path_.toStdString());
  for (const FoundPlan& plan : file_->plans)
    if (!plan.file.empty()) copy_into(folder.toStdString(), plan.file);
}

void PlanView::choose_folder() {
  const QString folder = QFileDialog::getExistingDirectory(this, tr("Save the plans into a folder"));
  if (folder.isEmpty()) return;
  try {
    save_plans(folder);
    emit message(tr("%1 was written").arg(QDir(folder).filePath(QFileInfo(path_).fileName())));
  } catch (const RunError& error) {
    emit message(QString::fromStdString(error.what()));
  }
}

void PlanView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (split_->property("placed").toBool() || height() < 100) return;
  split_->setSizes({58 * height() / 100, 42 * height() / 100});
  plots_->setSizes({40 * width() / 100, 60 * width() / 100});
  split_->setProperty("placed", true);
}

}  // namespace rehearse::gui
