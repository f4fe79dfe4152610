#include "gui/views/session/start_page.hpp"

#include <QAction>
#include <QFileInfo>
#include <QGridLayout>
#include <QHash>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QScrollArea>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <functional>

#include "gui/models/work/background.hpp"
#include "gui/views/session/example_card.hpp"

namespace rehearse::gui {

namespace {

constexpr int kCardWidth = 205, kSpacing = 10, kMostColumns = 4, kMostWidth = 1240, kMargin = 14;
constexpr int kPath = Qt::UserRole;

// Returns the sketches of examples by name, shared by all windows of the program.
QHash<QString, Sketch>& sketches() {
  static QHash<QString, Sketch> made;
  return made;
}

QLabel* heading(const QString& text) {
  auto* label = new QLabel(text);
  QFont font = label->font();
  font.setBold(true);
  font.setPointSizeF(font.pointSizeF() * 1.15);
  label->setFont(font);
  return label;
}

}  // namespace

StartPage::StartPage(std::vector<Example> examples, QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Start page"));
  content_ = new QWidget;
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(kMargin, kMargin, kMargin, kMargin);
  column->setSpacing(kSpacing);
  column->addWidget(heading(tr("Start with an example")));
  grid_ = new QGridLayout;
  grid_->setSpacing(kSpacing);
  column->addLayout(grid_);
  for (Example& example : examples) {
    auto* card = new ExampleCard(std::move(example), content_);
    const std::size_t place = cards_.size();
    cards_.push_back(card);
    connect(card, &ExampleCard::clicked, this, [this, card] { emit example_chosen(card->example()); });
    connect(card, &ExampleCard::moved, this,
            [this, place](int columns, int rows) { move_from(place, columns, rows); });
    card->installEventFilter(this);
  }
  column->addSpacing(kSpacing);
  column->addWidget(heading(tr("Or with your own files")));
  commands_ = new QHBoxLayout;
  commands_->setSpacing(kSpacing);
  commands_->addStretch(1);
  column->addLayout(commands_);
  auto* drop =
      new QLabel(tr("Traces, scenarios, tables, plans and sessions can be dropped anywhere in this window."));
  drop->setWordWrap(true);
  column->addWidget(drop);
  column->addSpacing(kSpacing);
  recent_title_ = heading(tr("Recently opened"));
  column->addWidget(recent_title_);
  recent_ = new QTreeWidget;
  recent_->setAccessibleName(tr("Recently opened files"));
  recent_->setHeaderLabels({tr("File"), tr("Kind"), tr("When"), tr("Folder")});
  recent_->setRootIsDecorated(false);
  recent_->setUniformRowHeights(true);
  recent_->setAllColumnsShowFocus(true);
  recent_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  recent_->header()->setSectionsMovable(false);
  connect(recent_, &QTreeWidget::itemActivated, this,
          [this](QTreeWidgetItem* item) { emit file_chosen(item->data(0, kPath).toString()); });
  column->addWidget(recent_);
  column->addStretch(1);
  scroll_ = new QScrollArea;
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setWidgetResizable(true);
  scroll_->setWidget(content_);
  scroll_->setFocusPolicy(Qt::NoFocus);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->addWidget(scroll_);
  if (!cards_.empty()) setFocusProxy(cards_.front());
}

StartPage::~StartPage() {
  pool_.clear();
  pool_.waitForDone();
}

void StartPage::set_commands(const QList<QAction*>& actions) {
  for (QAction* action : actions) {
    auto* button = new QToolButton;
    button->setDefaultAction(action);
    button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    QString text = action->text();
    button->setText(
        QStringLiteral("%1  (%2)")
            .arg(text.remove('&'), action->shortcuts().value(0).toString(QKeySequence::NativeText)));
    button->setFocusPolicy(Qt::StrongFocus);
    commands_->insertWidget(commands_->count() - 1, button);
  }
}

void StartPage::show_recent() {
  recent_->clear();
  const QDateTime now = QDateTime::currentDateTime();
  for (const RecentFile& file : recent_files()) {
    const QFileInfo info(file.path);
    if (!info.exists()) continue;
    auto* item = new QTreeWidgetItem(
        recent_, {info.fileName(), file.kind, told_when(file.when, now), info.absolutePath()});
    item->setData(0, kPath, file.path);
    for (int c = 0; c < recent_->columnCount(); ++c) item->setToolTip(c, file.path);
  }
  const int rows = recent_->topLevelItemCount();
  recent_title_->setVisible(rows > 0);
  recent_->setVisible(rows > 0);
  if (rows == 0) return;
  for (const int column : {0, 1, 2}) recent_->resizeColumnToContents(column);
  recent_->setCurrentItem(recent_->topLevelItem(0));
  recent_->setFixedHeight(recent_->header()->sizeHint().height() + rows * recent_->sizeHintForRow(0) +
                          2 * recent_->frameWidth() + 2);
}

bool StartPage::settled() const {
  return !isVisible() || std::all_of(cards_.begin(), cards_.end(),
                                     [](const ExampleCard* card) { return card->has_picture(); });
}

void StartPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  show_recent();
  lay_out();
  draw_pictures();
}

void StartPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  lay_out();
}

bool StartPage::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusIn) scroll_->ensureWidgetVisible(static_cast<QWidget*>(watched));
  return QWidget::eventFilter(watched, event);
}

void StartPage::draw_pictures() {
  if (drawn_) return;
  drawn_ = true;
  pool_.setMaxThreadCount(1);
  for (ExampleCard* card : cards_) {
    const auto made = sketches().constFind(card->example().name);
    if (made != sketches().constEnd()) {
      card->set_sketch(*made);
      continue;
    }
    run_on(pool_, this, [card, files = card->example().files]() -> std::function<void()> {
      return [card, sketch = sketch_of(files)] {
        sketches()[card->example().name] = sketch;
        card->set_sketch(sketch);
      };
    });
  }
}

void StartPage::lay_out() {
  const int width = std::min(this->width(), kMostWidth + 2 * kMargin);
  const int beside = (this->width() - width) / 2;
  content_->layout()->setContentsMargins(kMargin + beside, kMargin, kMargin + beside, kMargin);
  const int room = width - 2 * kMargin;
  const int columns = std::clamp((room + kSpacing) / (kCardWidth + kSpacing), 1, kMostColumns);
  if (columns == columns_) return;
  for (int c = 0; c < kMostColumns; ++c) grid_->setColumnStretch(c, c < columns ? 1 : 0);
  for (std::size_t c = 0; c < cards_.size(); ++c) {
    grid_->removeWidget(cards_[c]);
    grid_->addWidget(cards_[c], static_cast<int>(c) / columns, static_cast<int>(c) % columns);
  }
  columns_ = columns;
}

void StartPage::move_from(std::size_t card, int columns, int rows) {
  const int to = static_cast<int>(card) + columns + rows * std::max(1, columns_);
  if (to >= 0 && to < static_cast<int>(cards_.size()))
    cards_[static_cast<std::size_t>(to)]->setFocus(Qt::TabFocusReason);
}

}  // namespace rehearse::gui
