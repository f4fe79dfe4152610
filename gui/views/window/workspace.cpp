#include "gui/views/window/workspace.hpp"

#include <QAction>
#include <QApplication>
#include <QHBoxLayout>
#include <QMouseEvent>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <QTabWidget>
#include <QToolButton>
#include <algorithm>

#include "gui/views/window/detached_window.hpp"

namespace rehearse::gui {

namespace {

constexpr int kSideWidth = 330, kTabsHeight = 310, kFirstHeight = 200, kWide = 10'000;

QSplitter* make_splitter(Qt::Orientation orientation, const QString& name) {
  auto* splitter = new QSplitter(orientation);
  splitter->setChildrenCollapsible(false);
  splitter->setAccessibleName(name);
  return splitter;
}

}  // namespace

Workspace::Workspace(QWidget* timeline, QWidget* start_page, QWidget* parent)
    : QWidget(parent), timeline_(timeline), start_page_(start_page), heights_{kWide, kTabsHeight} {
  homes_.push_back({timeline, tr("Timeline"), Place::timeline});
  all_ = make_splitter(Qt::Horizontal, tr("Side and views"));
  side_ = make_splitter(Qt::Vertical, tr("Runs and scenario"));
  right_ = make_splitter(Qt::Vertical, tr("Timeline and tabs"));
  stack_ = new QStackedWidget;
  tabs_ = new QTabWidget;
  tabs_->setAccessibleName(tr("Tabs that explain the timelines"));
  tabs_->setDocumentMode(true);
  tabs_->tabBar()->setAccessibleName(tr("Views"));
  tabs_->tabBar()->setToolTip(tr("Double-click a tab to maximise its view or to restore the layout"));
  right_->addWidget(timeline);
  right_->addWidget(tabs_);
  right_->setStretchFactor(0, 1);
  stack_->addWidget(start_page);
  stack_->addWidget(right_);
  all_->addWidget(side_);
  all_->addWidget(stack_);
  all_->setStretchFactor(1, 1);
  all_->setSizes({kSideWidth, kWide});
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->addWidget(all_);
  connect(tabs_, &QTabWidget::tabBarDoubleClicked, this, [this](int tab) {
    if (tab >= 0) maximise(maximised_ == tabs_->widget(tab) ? nullptr : tabs_->widget(tab));
  });
  connect(tabs_, &QTabWidget::currentChanged, this, [this](int tab) {
    // While a tab is maximised, choosing another tab maximises that one instead.
    if (maximised_ && tab >= 0 && home_of(maximised_)->place == Place::tabs) maximised_ = tabs_->widget(tab);
    emit changed();
  });
  follow_work();
  apply();
}

Workspace::~Workspace() {
  qApp->removeEventFilter(this);
  disconnect(qApp, nullptr, this, nullptr);
  disconnect(tabs_, nullptr, this, nullptr);
  const QSignalBlocker quiet(this);
  attach_all();
  qDeleteAll(windows_);  // the remaining ones, whose views are already destroyed
}

void Workspace::add_to_side(QWidget* view) {
  homes_.push_back({view, view->accessibleName(), Place::side});
  side_->addWidget(view);
  side_->setStretchFactor(side_->count() - 1, side_->count() - 1);
  side_->setSizes({kFirstHeight, kWide});
}

void Workspace::add_tab(QWidget* view, const QString& title) {
  homes_.push_back({view, title, Place::tabs});
  tabs_->addTab(view, title);
  apply();
}

void Workspace::set_tab_commands(const QList<QAction*>& actions) {
  auto* corner = new QWidget;
  auto* row = new QHBoxLayout(corner);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  for (QAction* action : actions) {
    auto* button = new QToolButton;
    button->setDefaultAction(action);
    button->setAutoRaise(true);
    button->setToolButtonStyle(Qt::ToolButtonIconOnly);
    button->setAccessibleName(QString(action->text()).remove('&'));
    // Otherwise a click would take the focus from the view that the command applies to.
    button->setFocusPolicy(Qt::TabFocus);
    row->addWidget(button);
  }
  tabs_->setCornerWidget(corner);
}

// ----- places of views

const Workspace::Home* Workspace::home_of(const QWidget* view) const {
  for (const Home& home : homes_)
    if (home.view && home.view == view) return &home;
  return nullptr;
}

DetachedWindow* Workspace::window_of(const QWidget* view) const {
  for (DetachedWindow* window : windows_)
    if (view != nullptr && window->view() == view) return window;
  return nullptr;
}

bool Workspace::stands_here(const QWidget* view) const {
  auto* widget = const_cast<QWidget*>(view);
  return view != nullptr &&
         (right_->indexOf(widget) >= 0 || side_->indexOf(widget) >= 0 || tabs_->indexOf(widget) >= 0);
}

int Workspace::index_among(const QWidget* view, Place place) const {
  int index = 0;
  for (const Home& home : homes_) {
    if (home.view == view) break;
    if (home.place == place && stands_here(home.view)) ++index;
  }
  return index;
}

QWidget* Workspace::open_tab() const {
  return tabs_->currentWidget();
}

// Tracks which view the user works with: the focused one, or the tab that was clicked, since a click on a tab
// does not always move the focus.
void Workspace::follow_work() {
  qApp->installEventFilter(this);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) { work_with(now); });
  connect(tabs_, &QTabWidget::currentChanged, this, [this] {
    if (tabs_->tabBar()->hasFocus()) worked_with_ = open_tab();
  });
}

void Workspace::work_with(QWidget* widget) {
  for (; widget != nullptr; widget = widget->parentWidget()) {
    if (widget == tabs_->tabBar()) worked_with_ = open_tab();
    if (home_of(widget) != nullptr) worked_with_ = widget;
  }
}

bool Workspace::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::MouseButtonPress || !watched->isWidgetType()) return false;
  auto* widget = static_cast<QWidget*>(watched);
  if (widget == tabs_->tabBar()) {
    const int tab = tabs_->tabBar()->tabAt(static_cast<QMouseEvent*>(event)->pos());
    if (tab >= 0) worked_with_ = tabs_->widget(tab);
  } else {
    work_with(widget);
  }
  return false;
}

QWidget* Workspace::current_view() const {
  if (worked_with_ && worked_with_->isVisible()) return worked_with_;
  if (maximised_) return maximised_;
  return shows(Part::tabs) || !stands_here(timeline_) ? open_tab() : timeline_.data();
}

void Workspace::show_view(QWidget* view) {
  const Home* home = home_of(view);
  if (home == nullptr) return;
  if (DetachedWindow* window = window_of(view)) {
    window->show();
    window->raise();
    window->activateWindow();
    return;
  }
  if (!stands_here(view)) return;
  if (home->place == Place::tabs) {
    tabs_on_ = true;
    tabs_->setCurrentWidget(view);
  } else if (home->place == Place::timeline) {
    timeline_on_ = timeline_wanted_ = true;
  } else {
    side_on_ = true;
  }
  if (home->place != Place::side) start_shown_ = false;
  const bool beside_it = maximised_ == view || (maximised_ && home->place == Place::tabs &&
                                                home_of(maximised_)->place == Place::tabs);
  if (!beside_it) maximised_ = nullptr;
  apply();
}

// ----- visibility

void Workspace::show_start_page(bool shown) {
  start_shown_ = shown;
  if (shown) maximised_ = nullptr;
  apply();
}

void Workspace::set_has_runs(bool has_runs) {
  if (has_runs == has_runs_) return;
  has_runs_ = has_runs;
  timeline_wanted_ = false;
  if (has_runs) {
    start_shown_ = false;
    maximised_ = nullptr;
  }
  apply();
}

void Workspace::toggle(Part part) {
  const bool on = !shows(part);
  (part == Part::side ? side_on_ : part == Part::timeline ? timeline_on_ : tabs_on_) = on;
  if (part == Part::timeline) timeline_wanted_ = on;
  if (part != Part::side) start_shown_ = false;
  maximised_ = nullptr;
  apply();
}

bool Workspace::shows(Part part) const {
  if (part == Part::side) return !side_->isHidden();
  if (stack_->isHidden() || stack_->currentWidget() != right_) return false;
  if (part == Part::tabs) return !tabs_->isHidden();
  return stands_here(timeline_) && !timeline_->isHidden();
}

void Workspace::apply() {
  if (maximised_ && !stands_here(maximised_)) maximised_ = nullptr;
  const QWidget* alone = maximised_;
  const bool alone_in_side = alone != nullptr && home_of(alone)->place == Place::side;
  bool timeline = stands_here(timeline_), tabs = tabs_->count() > 0;
  if (alone != nullptr) {
    timeline = alone == timeline_;
    tabs = home_of(alone)->place == Place::tabs;
  } else {
    tabs = tabs && tabs_on_;
    timeline = timeline && timeline_on_ && (has_runs_ || timeline_wanted_ || !tabs);
  }
  if (both_shown_ && !(timeline && tabs)) {
    const QList<int> now = right_->sizes();
    if (now.size() == 2 && now[0] > 0 && now[1] > 0) heights_ = now;
  }
  if (stands_here(timeline_)) timeline_->setVisible(timeline);
  tabs_->setVisible(tabs);
  if (timeline && tabs && !both_shown_) right_->setSizes(heights_);
  both_shown_ = timeline && tabs;

  const bool start = start_shown_ && alone == nullptr;
  const QWidget* focus = window()->focusWidget();
  const bool focus_leaves = !start && focus != nullptr && start_page_->isAncestorOf(focus);
  stack_->setCurrentWidget(start ? start_page_ : right_);
  if (focus_leaves && (timeline || tabs)) (timeline ? timeline_.data() : tabs_->currentWidget())->setFocus();
  stack_->setVisible(!alone_in_side && (start || timeline || tabs));
  bool any_in_side = false;
  for (const Home& home : homes_) {
    if (home.place != Place::side || !stands_here(home.view)) continue;
    home.view->setVisible(!alone_in_side || home.view == alone);
    any_in_side = true;
  }
  side_->setVisible(any_in_side && (alone != nullptr ? alone_in_side : side_on_));
  emit changed();
}

void Workspace::maximise(QWidget* view) {
  if (view != nullptr && !stands_here(view)) return;
  const Home* home = home_of(view);
  if (home != nullptr && home->place == Place::tabs) tabs_->setCurrentWidget(view);
  maximised_ = view;
  apply();
}

// ----- detached windows

void Workspace::detach(QWidget* view) {
  const Home* home = home_of(view);
  if (home == nullptr || !stands_here(view)) return;
  if (maximised_ == view) maximised_ = nullptr;
  const QSize size = view->size().expandedTo({900, 600});
  auto* made = new DetachedWindow(view, home->title, *window());
  windows_.push_back(made);
  connect(made, &DetachedWindow::closed, this, [this, view = home->view] {
    if (view) attach(view);
  });
  const QByteArray place = QSettings().value("detached/" + view->objectName()).toByteArray();
  if (place.isEmpty() || !made->restoreGeometry(place)) made->resize(size);
  apply();
  made->show();
  made->activateWindow();
  view->setFocus();
}

void Workspace::attach(QWidget* view) {
  DetachedWindow* from = window_of(view);
  const Home* home = home_of(view);
  if (from == nullptr || home == nullptr) return;
  QSettings().setValue("detached/" + view->objectName(), from->saveGeometry());
  windows_.erase(std::find(windows_.begin(), windows_.end(), from));
  const int at = index_among(view, home->place);
  if (home->place == Place::tabs) {
    tabs_->insertTab(at, view, home->title);
    tabs_->setCurrentWidget(view);
  } else {
    (home->place == Place::side ? side_ : right_)->insertWidget(at, view);
  }
  from->hide();
  from->deleteLater();
  apply();
}

void Workspace::attach_all() {
  for (const Home& home : homes_)
    if (home.view) attach(home.view);
}

// ----- room

void Workspace::give_tabs(int height) {
  if (!both_shown_ || tabs_->height() >= height) return;
  if (heights_before_tabs_.isEmpty()) heights_before_tabs_ = right_->sizes();
  right_->setSizes({std::max(0, right_->height() - height), height});
}

void Workspace::take_back_from_tabs() {
  if (heights_before_tabs_.isEmpty()) return;
  if (both_shown_) right_->setSizes(heights_before_tabs_);
  heights_before_tabs_.clear();
}

void Workspace::remember(QSettings& settings) const {
  settings.setValue("layout/all", all_->saveState());
  settings.setValue("layout/side", side_->saveState());
  const QList<int> heights = both_shown_ ? right_->sizes() : heights_;
  settings.setValue("layout/tabs_height", heights.value(1));
  settings.setValue("layout/shows_side", side_on_);
  settings.setValue("layout/shows_timeline", timeline_on_);
  settings.setValue("layout/shows_tabs", tabs_on_);
  if (open_tab() != nullptr) settings.setValue("layout/tab", open_tab()->objectName());
}

void Workspace::restore(QSettings& settings) {
  all_->restoreState(settings.value("layout/all").toByteArray());
  side_->restoreState(settings.value("layout/side").toByteArray());
  const int height = settings.value("layout/tabs_height", kTabsHeight).toInt();
  heights_ = {kWide, std::clamp(height, 1, kWide)};
  if (both_shown_) right_->setSizes(heights_);
  side_on_ = settings.value("layout/shows_side", true).toBool();
  timeline_on_ = settings.value("layout/shows_timeline", true).toBool();
  tabs_on_ = settings.value("layout/shows_tabs", true).toBool();
  const QString tab = settings.value("layout/tab").toString();
  for (int t = 0; t < tabs_->count(); ++t)
    if (tabs_->widget(t)->objectName() == tab) tabs_->setCurrentIndex(t);
  apply();
}

}  // namespace rehearse::gui
