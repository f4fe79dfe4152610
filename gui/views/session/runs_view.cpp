#include "gui/views/session/runs_view.hpp"

#include <QAction>
#include <QApplication>
#include <QHeaderView>
#include <QLabel>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"

namespace rehearse::gui {
namespace {

// Pixels that all columns need; in a narrower view, names get a second line instead.
constexpr int kRoomForColumns = 480;
constexpr int kSwatchWidth = 4;

// Paints names: the check box, a stripe in the run's colour, the name and, in a narrow list, further details.
class RunDelegate : public QStyledItemDelegate {
public:
  RunDelegate(const bool& narrow, QObject* parent) : QStyledItemDelegate(parent), narrow_(narrow) {}

  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QSize size = QStyledItemDelegate::sizeHint(option, index);
    const int line = option.fontMetrics.height();
    size.setHeight(narrow_ ? 2 * line + 8 : line + 10);
    if (index.column() != RunList::name) size.rwidth() += line / 2;
    return size;
  }

  void paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& index) const override {
    QStyleOptionViewItem option = given;
    initStyleOption(&option, index);
    const bool is_shown = index.data(RunList::PlaceRole).toInt() >= 0;
    const QPalette::ColorGroup group = !(option.state & QStyle::State_Active) ? QPalette::Inactive
                                       : is_shown                             ? QPalette::Active
                                                                              : QPalette::Disabled;
    const bool selected = option.state & QStyle::State_Selected;
    const QColor text = selected   ? option.palette.color(QPalette::HighlightedText)
                        : is_shown ? option.palette.color(group, QPalette::Text)
                                   : option.palette.color(QPalette::Disabled, QPalette::Text);
    const QString first = option.text,
                  second = narrow_ ? index.data(RunList::DetailRole).toString() : QString();
    option.text.clear();
    QStyle& style = *option.widget->style();
    style.drawControl(QStyle::CE_ItemViewItem, &option, painter, option.widget);
    option.text = first;
    QRect inside = option.rect.adjusted(4, 0, -4, 0);
    painter->save();
    if (index.column() == RunList::name) {
      // The style's own frame of a check box is almost invisible on dark backgrounds.
      const QRect box = style.subElementRect(QStyle::SE_ItemViewItemCheckIndicator, &option, option.widget);
      painter->setPen(option.palette.color(selected ? QPalette::HighlightedText : QPalette::PlaceholderText));
      painter->drawRect(box.adjusted(0, 0, -1, -1));
      inside.setLeft(style.subElementRect(QStyle::SE_ItemViewItemText, &option, option.widget).left());
      if (const int place = index.data(RunList::PlaceRole).toInt(); place >= 0)
        painter->fillRect(QRect(inside.left(), option.rect.top() + 4, kSwatchWidth, option.rect.height() - 8),
                          colour_of_run(place, is_dark(option.palette)));
      inside.adjust(kSwatchWidth + 6, 0, 0, 0);
    }
    const int line = option.fontMetrics.height();
    const int side = static_cast<int>(option.displayAlignment & Qt::AlignHorizontal_Mask);
    const auto write = [&](const QRect& place, const QFont& font, const QColor& colour, const QString& what) {
      painter->setFont(font);
      painter->setPen(colour);
      painter->drawText(place, side | Qt::AlignVCenter,
                        QFontMetrics(font).elidedText(what, Qt::ElideMiddle, place.width()));
    };
    if (!narrow_ || (second.isEmpty() && index.column() != RunList::difference)) {
      write(inside, option.font, text, first);
    } else {
      const int top = option.rect.top() + (option.rect.height() - 2 * line) / 2;
      QFont plain = option.font;
      plain.setBold(false);
      write({inside.left(), top, inside.width(), line}, option.font, text, first);
      write({inside.left(), top + line, inside.width(), line}, plain,
            selected ? text : option.palette.color(QPalette::PlaceholderText), second);
    }
    painter->restore();
  }

  void updateEditorGeometry(QWidget* editor, const QStyleOptionViewItem& option,
                            const QModelIndex&) const override {
    QRect place = option.rect;
    place.setLeft(place.left() + 28);
    const int height = editor->sizeHint().height();
    place.setTop(place.top() + (place.height() - height) / 2);
    place.setHeight(height);
    editor->setGeometry(place);
  }

private:
  const bool& narrow_;
};

}  // namespace

RunsView::RunsView(Session& session, ViewState& state, QWidget* parent)
    : QWidget(parent), session_(session), state_(state), list_(session) {
  setAccessibleName("Runs");
  show_ = add("&Show or hide", Qt::Key_Space, "Show the run on the timeline, or hide it",
              &RunsView::show_or_hide);
  base_ = add("Make &base", Qt::Key_B, "Compare the other runs with this one", &RunsView::make_base);
  rename_ = add("Re&name", Qt::Key_F2, "Give the run a different name", &RunsView::rename);
  duplicate_ = add("&Duplicate and change", Qt::Key_D,
                   "Open the run's scenario, to change it and run it again", &RunsView::duplicate);
  reload_ = add("Re&load", Qt::Key_R, "Read the run's file again", &RunsView::reload);
  up_ = add("Move &up", Qt::ALT | Qt::Key_Up, "Move the run up", &RunsView::move_up);
  down_ = add("Move &down", Qt::ALT | Qt::Key_Down, "Move the run down", &RunsView::move_down);
  remove_ =
      add("&Remove", Qt::Key_Delete, "Remove the run from the window; its file is kept", &RunsView::remove);
  base_->setIconText("Make base");
  duplicate_->setIconText("Duplicate");
  build_table();
  connect(&session_, &Session::current_changed, this, &RunsView::follow_current);
  connect(&session_, &Session::runs_changed, this, &RunsView::follow_session);
  connect(&session_, &Session::shown_changed, this, &RunsView::follow_session);
  connect(&session_, &Session::run_changed, this, &RunsView::follow_session);
  follow_current();
}

QAction* RunsView::add(const char* text, const QKeySequence& keys, const char* tip,
                       void (RunsView::*slot)()) {
  return add_command(*this, {menu::run, text, {keys}, tip}, [this, slot] { (this->*slot)(); });
}

void RunsView::build_table() {
  table_ = new QTreeView(this);
  table_->setAccessibleName("Runs of the window");
  table_->setModel(&list_);
  table_->setItemDelegate(new RunDelegate(narrow_, table_));
  table_->setRootIsDecorated(false);
  table_->setItemsExpandable(false);
  table_->setAllColumnsShowFocus(true);
  table_->setUniformRowHeights(true);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::DoubleClicked);
  table_->setDragDropMode(QAbstractItemView::InternalMove);
  table_->setDefaultDropAction(Qt::MoveAction);
  table_->setDropIndicatorShown(true);
  table_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  table_->addActions(actions());
  table_->header()->setSectionsMovable(false);
  table_->header()->setStretchLastSection(false);
  table_->header()->setMinimumSectionSize(40);
  for (int column = 0; column < RunList::kColumns; ++column)
    table_->header()->setSectionResizeMode(
        column, column == RunList::name ? QHeaderView::Stretch : QHeaderView::ResizeToContents);
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) {
            if (now.isValid()) session_.set_current(list_.id(now.row()));
            follow_session();
          });

  auto* text = new QLabel(
      "<p><b>No runs yet</b></p><p>Open a trace (Ctrl+O), or write a scenario and run it (Ctrl+R).</p>",
      this);
  text->setWordWrap(true);
  text->setAlignment(Qt::AlignCenter);
  text->setMargin(20);
  empty_ = text;

  tools_ = new QToolBar("Runs", this);
  tools_->setToolButtonStyle(Qt::ToolButtonTextOnly);
  tools_->setMovable(false);
  tools_->addActions({base_, duplicate_, remove_});
  auto* more = new QToolButton(tools_);
  more->setText("More");
  more->setToolTip("Show more commands for the run");
  more->setPopupMode(QToolButton::InstantPopup);
  more->addActions({show_, rename_, reload_, up_, down_});
  tools_->addWidget(more);

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(tools_);
  layout->addWidget(table_, 1);
  layout->addWidget(empty_, 1);
}

int RunsView::chosen() const {
  return list_.id(table_->currentIndex().row());
}

void RunsView::follow_current() {
  const auto run = session_.current();
  const int row = run ? list_.row_of(run->id) : -1;
  if (row >= 0 && row != table_->currentIndex().row())
    table_->setCurrentIndex(list_.index(row, RunList::name));
  follow_session();
}

void RunsView::follow_session() {
  const bool none = session_.runs().empty();
  table_->setVisible(!none);
  tools_->setVisible(!none);
  empty_->setVisible(none);
  const auto run = session_.run(chosen());
  const int row = table_->currentIndex().row();
  for (QAction* action : {show_, rename_, remove_}) action->setEnabled(run != nullptr);
  base_->setEnabled(run && !list_.data(table_->currentIndex(), RunList::BaseRole).toBool());
  reload_->setEnabled(run && !run->path.empty());
  duplicate_->setEnabled(run && !run->scenario_text.empty());
  up_->setEnabled(run && row > 0);
  down_->setEnabled(run && row + 1 < list_.rowCount());
}

void RunsView::lay_out() {
  narrow_ = width() < kRoomForColumns;
  table_->setColumnHidden(RunList::source, narrow_);
  table_->setColumnHidden(RunList::samples, narrow_);
  table_->doItemsLayout();  // row heights have changed
}

void RunsView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (narrow_ != (width() < kRoomForColumns) || event->oldSize().width() <= 0) lay_out();
}

void RunsView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) table_->viewport()->update();
}

void RunsView::show_or_hide() {
  if (const int id = chosen()) session_.set_shown(id, !session_.is_shown(id));
}

void RunsView::make_base() {
  if (const int id = chosen()) {
    session_.set_shown(id, true);
    session_.set_base(id);
  }
}

void RunsView::rename() {
  const QModelIndex index = table_->currentIndex().siblingAtColumn(RunList::name);
  if (index.isValid()) table_->edit(index);
}

void RunsView::remove() {
  const int id = chosen();
  if (id == 0) return;
  session_.remove(id);
  state_.forget_run(id);
}

void RunsView::reload() {
  if (const int id = chosen()) emit reload_requested(id);
}

void RunsView::duplicate() {
  if (const int id = chosen()) emit duplicate_requested(id);
}

void RunsView::move(int by) {
  const int row = table_->currentIndex().row();
  if (row >= 0 && row + by >= 0 && row + by < list_.rowCount()) session_.move(chosen(), row + by);
}

}  // namespace rehearse::gui
