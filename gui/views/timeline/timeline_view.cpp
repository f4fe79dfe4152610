#include "gui/views/timeline/timeline_view.hpp"

#include <QAction>
#include <QComboBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSplitter>
#include <QStackedLayout>
#include <QToolButton>

#include "gui/views/parts/export.hpp"
#include "gui/views/timeline/minimap.hpp"
#include "gui/views/timeline/timeline_axis.hpp"
#include "gui/views/timeline/timeline_canvas.hpp"
#include "gui/views/timeline/timeline_labels.hpp"
#include "gui/views/timeline/timeline_legend.hpp"

namespace rehearse::gui {

namespace {

// Has the height of the minimap and the axis together, so that names and tracks below are level.
class Corner : public QWidget {
public:
  Corner(QWidget* minimap, QWidget* axis) : minimap_(minimap), axis_(axis) {
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
    minimap_->installEventFilter(this);
  }
  QSize sizeHint() const override {
    return {200, minimap_->sizeHint().height() + axis_->sizeHint().height()};
  }

protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::Resize) updateGeometry();
    return false;
  }
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.fillRect(rect(), palette().color(QPalette::Window));
    painter.fillRect(QRect(0, height() - 1, width(), 1), palette().color(QPalette::Mid));
    painter.fillRect(QRect(width() - 1, 0, 1, height()), palette().color(QPalette::Mid));
    QColor weak = palette().color(QPalette::WindowText);
    weak.setAlpha(150);
    painter.setPen(weak);
    const int minimap = minimap_->height();
    painter.drawText(QRect(8, 0, width() - 16, minimap), Qt::AlignLeft | Qt::AlignVCenter, tr("Overview"));
    painter.drawText(QRect(8, minimap, width() - 16, height() - minimap - 4), Qt::AlignLeft | Qt::AlignBottom,
                     tr("Time"));
  }

private:
  QWidget *minimap_, *axis_;
};

}  // namespace

TimelineView::TimelineView(Session& session, ViewState& state, QWidget* parent)
    : QWidget(parent), session_(session), state_(state), scene_(session, state) {
  setAccessibleName(tr("Timeline"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* stacked = new QWidget;
  stack_ = new QStackedLayout(stacked);
  auto* nothing =
      new QLabel(tr("<p style='font-size:large'><b>No run is open</b></p>"
                    "<p>Open a trace (File, Open), drop one here, or run a scenario.</p>"));
  nothing->setAlignment(Qt::AlignCenter);
  nothing->setWordWrap(true);
  stack_->addWidget(nothing);
  stack_->addWidget(make_tracks());
  column->addWidget(make_tool_line());
  column->addWidget(stacked, 1);
  legend_ = new TimelineLegend(scene_);
  column->addWidget(legend_);
  make_actions();

  connect(&scene_, &TimelineScene::lines_changed, this, &TimelineView::set_scroll_bar);
  connect(&scene_, &TimelineScene::scrolled, this, &TimelineView::set_scroll_bar);
  connect(&scene_, &TimelineScene::hits_changed, this, &TimelineView::tell_hits);
  connect(bar_, &QScrollBar::valueChanged, this, [this](int y) { scene_.set_scroll(y); });
  connect(&state_, &ViewState::rows_changed, this, &TimelineView::follow_state);
  connect(&state_, &ViewState::marks_changed, this, &TimelineView::follow_state);
  connect(&state_, &ViewState::search_changed, this, &TimelineView::follow_state);
  connect(&state_, &ViewState::visible_changed, this, &TimelineView::follow_state);
  connect(canvas_, &TimelineCanvas::menu_wanted, this, &TimelineView::show_menu);
  connect(labels_, &TimelineLabels::menu_wanted, this, &TimelineView::show_menu);
  connect(axis_, &TimelineAxis::edited, this, [this] { canvas_->setFocus(); });
  setFocusProxy(canvas_);
  follow_state();
  tell_hits();
  set_scroll_bar();
}

QWidget* TimelineView::make_tool_line() {
  auto* line = new QWidget;
  leave_out_of_pictures(*line);
  auto* layout = new QHBoxLayout(line);
  layout->setContentsMargins(6, 4, 6, 4);
  layout->setSpacing(4);
  search_ = new QLineEdit;
  search_->setPlaceholderText(tr("Search: name, kind:waiting, mb:3, step:1"));
  search_->setToolTip(
      tr("Find spans by parts of their name and by kind:, pass:, mb:, step: and op: (/ or Ctrl+F). "
         "Enter goes to the next one."));
  search_->setAccessibleName(tr("Search"));
  search_->setClearButtonEnabled(true);
  search_->setMinimumWidth(140);
  search_->installEventFilter(this);
  hits_ = new QLabel;
  hits_->setAccessibleName(tr("Number of hits"));
  previous_ = new QToolButton;
  next_ = new QToolButton;
  for (QToolButton* button : {previous_, next_}) button->setAutoRaise(true);
  filter_ = new QLineEdit;
  filter_->setPlaceholderText(tr("Filter ranks and tracks"));
  filter_->setToolTip(tr("Show only ranks and tracks whose names contain this"));
  filter_->setAccessibleName(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setMinimumWidth(110);
  filter_->installEventFilter(this);
  grouping_ = new QComboBox;
  for (const std::string_view name : kGroupingNames) {
    const QString text = QString::fromLatin1(name.data(), static_cast<qsizetype>(name.size()));
    grouping_->addItem(text == QLatin1String("none")   ? tr("No groups")
                       : text == QLatin1String("kind") ? tr("Merge similar")
                                                       : tr("By %1").arg(text));
  }
  grouping_->setToolTip(tr("Merge ranks with similar behaviour, or group ranks by node, stage or role"));
  grouping_->setAccessibleName(tr("Grouping"));
  layout->addWidget(search_, 5);
  layout->addWidget(hits_);
  layout->addWidget(previous_);
  layout->addWidget(next_);
  layout->addSpacing(8);
  layout->addWidget(filter_, 3);
  layout->addWidget(grouping_);
  connect(search_, &QLineEdit::textChanged, this, [this](const QString& text) { state_.set_search(text); });
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) { state_.set_filter(text); });
  connect(grouping_, &QComboBox::activated, this,
          [this](int n) { state_.set_grouping(static_cast<Grouping>(n)); });
  return line;
}

QWidget* TimelineView::make_tracks() {
  minimap_ = new Minimap(scene_);
  axis_ = new TimelineAxis(scene_);
  canvas_ = new TimelineCanvas(scene_);
  labels_ = new TimelineLabels(scene_);
  bar_ = new QScrollBar(Qt::Vertical);
  bar_->setAccessibleName(tr("Scroll over the tracks"));
  auto* left = new QWidget;
  auto* left_column = new QVBoxLayout(left);
  left_column->setContentsMargins(0, 0, 0, 0);
  left_column->setSpacing(0);
  left_column->addWidget(new Corner(minimap_, axis_));
  left_column->addWidget(labels_, 1);
  auto* middle = new QWidget;
  auto* grid = new QGridLayout(middle);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setSpacing(0);
  grid->addWidget(minimap_, 0, 0);
  grid->addWidget(axis_, 1, 0);
  grid->addWidget(canvas_, 2, 0);
  grid->addWidget(bar_, 2, 1);
  grid->setRowStretch(2, 1);
  auto* splitter = new QSplitter(Qt::Horizontal);
  splitter->addWidget(left);
  splitter->addWidget(middle);
  splitter->setStretchFactor(1, 1);
  splitter->setHandleWidth(3);
  splitter->setSizes({230, 1000});
  splitter->setChildrenCollapsible(false);
  splitter->setAccessibleName(tr("Names and tracks"));
  return splitter;
}

void TimelineView::follow_state() {
  if (search_->text() != state_.search()) search_->setText(state_.search());
  if (filter_->text() != state_.filter()) filter_->setText(state_.filter());
  grouping_->setCurrentIndex(static_cast<int>(state_.grouping()));
  path_action_->setChecked(state_.shows_critical_path());
  flows_action_->setChecked(state_.shows_flows());
  counters_action_->setChecked(state_.shows_counters());
  for (QAction* action : group_actions_) action->setEnabled(state_.grouping() != Grouping::none);
  back_action_->setEnabled(state_.can_go_back());
  forward_action_->setEnabled(state_.can_go_forward());
}

void TimelineView::tell_hits() {
  const std::size_t count = scene_.hit_count();
  const QLocale locale = QLocale::c();
  QString text;
  if (state_.search().trimmed().isEmpty())
    text.clear();
  else if (!scene_.search_problem().empty())
    text = tr("not understood");
  else if (scene_.searching())
    text = tr("searching ...");
  else if (count == 0)
    text = tr("nothing found");
  else if (scene_.hit_number() > 0)
    text = tr("%1 of %2")
               .arg(locale.toString(qulonglong{scene_.hit_number()}), locale.toString(qulonglong{count}));
  else
    text = count == 1 ? tr("1 hit") : tr("%1 hits").arg(locale.toString(qulonglong{count}));
  hits_->setText(text);
  hits_->setVisible(!text.isEmpty());
  hits_->setToolTip(QString::fromStdString(scene_.search_problem()));
  next_hit_action_->setEnabled(count > 0);
  previous_hit_action_->setEnabled(count > 0);
}

void TimelineView::set_scroll_bar() {
  stack_->setCurrentIndex(scene_.lines().empty() ? 0 : 1);
  legend_->setVisible(!scene_.lines().empty());
  const QSignalBlocker quiet(bar_);
  bar_->setRange(0, scene_.greatest_scroll());
  bar_->setPageStep(std::max(1, scene_.canvas().height()));
  bar_->setSingleStep(scene_.row_height());
  bar_->setValue(scene_.scroll());
}

bool TimelineView::eventFilter(QObject* watched, QEvent* event) {
  auto* field = qobject_cast<QLineEdit*>(watched);
  if (!field || (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride))
    return QWidget::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
  if (!enter && key->key() != Qt::Key_Escape) return QWidget::eventFilter(watched, event);
  // In a field, these keys are not shortcuts of the tracks.
  event->accept();
  if (event->type() == QEvent::ShortcutOverride) return true;
  if (key->key() == Qt::Key_Escape) field->clear();
  if (enter && field == search_)
    scene_.go_to_hit(key->modifiers().testFlag(Qt::ShiftModifier) ? -1 : 1);
  else
    canvas_->setFocus();
  return true;
}

}  // namespace rehearse::gui
