#include "gui/views/comparison/compare_view.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/parts/export.hpp"
#include "gui/views/parts/placeholder.hpp"

#include <QAction>
#include <QBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>
#include <algorithm>

namespace rehearse::gui {
namespace {

constexpr int kLeastNames = 150, kUsualNames = 240, kLeastSentences = 260;  // pixels

struct Found {
  QString sentences;
  TableData ops;
};

Found compare_runs(const Runs& runs, const std::vector<std::string>& names,
                   const std::atomic<bool>& cancelled) {
  Found found;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const std::string sentence = difference_sentence(*runs.front(), *runs[i], names.front(), names[i]);
    if (sentence.empty()) continue;
    // Print the name of the compared run in bold.
    const QString name = QString::fromStdString(names[i]).toHtmlEscaped();
    QString text = QString::fromStdString(sentence).toHtmlEscaped();
    if (text.startsWith(name)) text.replace(0, name.size(), "<b>" + name + "</b>");
    found.sentences += "<p style='margin-top:0; margin-bottom:6px'>" + text + "</p>";
  }
  found.ops = rows_of(compared_ops(runs, &cancelled), names);
  return found;
}

}  // namespace

CompareView::CompareView(Session& session, ViewState&, QWidget* parent) : QWidget(parent), session_(session) {
  setAccessibleName(tr("Comparison"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  nothing_ = add_placeholder(*outer);

  split_ = new QSplitter(Qt::Horizontal, this);
  split_->setChildrenCollapsible(false);
  outer->addWidget(split_, 1);
  auto* scroll = new QScrollArea(split_);
  scroll->setAccessibleName(tr("Figures of the runs"));
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  left_ = new QWidget;
  scroll->setWidget(left_);
  auto* told = new QVBoxLayout(left_);
  told->setContentsMargins(12, 8, 8, 8);
  told->setSpacing(8);
  sentence_ = new QLabel(left_);
  sentence_->setTextFormat(Qt::RichText);
  sentence_->setWordWrap(true);
  sentence_->setMinimumSize(120, 1);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  sentence_->setAccessibleName(tr("Causes of the difference"));
  bars_ = new StackedBars(left_);
  bars_->setAccessibleName(tr("Parts of the steps"));
  told->addWidget(sentence_);
  told->addWidget(bars_);
  told->addStretch(1);

  auto* right = new QWidget(split_);
  auto* tables = new QVBoxLayout(right);
  tables->setContentsMargins(4, 4, 4, 4);
  tables->setSpacing(4);
  auto* head = new QHBoxLayout;
  tabs_ = new QTabBar(right);
  tabs_->setDrawBase(false);
  tabs_->setAccessibleName(tr("Tables of the comparison"));
  const auto page = [&](const QString& text, const QString& key, const QString& tip) {
    const int number = tabs_->addTab(text);
    tabs_->setTabToolTip(number, tip);
    add_command(*this, {menu::tables, tr("Compare %1").arg(text.toLower()), {QKeySequence(key)}, tip},
                [this, number] { tabs_->setCurrentIndex(number); });
  };
  page(tr("Figures"), tr("Alt+1"), tr("Show the figures of the runs side by side"));
  page(tr("Kinds of op"), tr("Alt+2"), tr("Show the difference of each kind of op"));
  head->addWidget(tabs_);
  filter_ = new QLineEdit(right);
  filter_->setPlaceholderText(tr("Filter"));
  filter_->setClearButtonEnabled(true);
  filter_->setAccessibleName(tr("Filter of the table"));
  filter_->setToolTip(tr("Show only rows that contain this text"));
  leave_out_of_pictures(*filter_);
  head->addWidget(filter_, 1);
  tables->addLayout(head);
  pages_ = new QStackedWidget(right);
  figures_ = new TableView(pages_);
  figures_->setAccessibleName(tr("Figures of the runs"));
  ops_ = new TableView(pages_);
  ops_->setAccessibleName(tr("Differences per kind of op"));
  pages_->addWidget(figures_);
  pages_->addWidget(ops_);
  tables->addWidget(pages_, 1);
  split_->addWidget(scroll);
  split_->addWidget(right);
  split_->setStretchFactor(0, 2);
  split_->setStretchFactor(1, 3);
  split_->setSizes({420, 580});
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    figures_->set_filter(text);
    ops_->set_filter(text);
  });
  connect(tabs_, &QTabBar::currentChanged, pages_, &QStackedWidget::setCurrentIndex);
  connect(tabs_, &QTabBar::currentChanged, this, &CompareView::give_room);
  connect(split_, &QSplitter::splitterMoved, this, [this] { by_hand_ = true; });

  const auto changed = [this] { again_.changed(); };
  connect(&session_, &Session::runs_changed, this, changed);
  connect(&session_, &Session::run_changed, this, changed);
  connect(&session_, &Session::shown_changed, this, changed);
  compare();
}

void CompareView::compare() {
  work_.cancel();
  Runs runs;
  for (const Session::RunPointer& run : session_.shown())
    if (run->timeline) runs.push_back(run);
  nothing_->setVisible(runs.size() < 2);
  split_->setVisible(runs.size() >= 2);
  if (runs.size() < 2) {
    nothing_->setText(runs.empty()
                          ? tr("No run is shown. Open two runs, or show them in the list of runs, to "
                               "compare them.")
                          : tr("Only %1 is shown. Open a second run, or show it in the list of runs, to "
                               "compare the two.")
                                .arg(QString::fromStdString(runs.front()->name)));
    return;
  }
  const std::vector<std::string> names = names_of(runs);
  bars_->set(breakdown_bars(runs, names));
  figures_->set(compared_figures(runs, names));
  give_room();
  sentence_->setText(tr("Comparing ..."));
  work_.ask(
      [runs, names](const std::atomic<bool>& cancelled) { return compare_runs(runs, names, cancelled); },
      [this](const Found& found) {
        sentence_->setText(found.sentences);
        sentence_->setVisible(!found.sentences.isEmpty());
        ops_->set(found.ops);
        give_room();
        emit compared();
      });
}

// Shrinks the first column of the table and the sentences in favour of the columns of figures.
void CompareView::give_room() {
  TableView* table = pages_->currentIndex() == 0 ? figures_ : ops_;
  if (split_->orientation() == Qt::Horizontal && !by_hand_) {
    int wanted = table->verticalScrollBar()->sizeHint().width() + 2 * table->frameWidth() + 10;
    // In the table of ops, the columns after "change" can be scrolled to.
    const QString last = pages_->currentIndex() == 0 ? QString() : tr("kind");
    for (int column = 0; column < table->table().columnCount(); ++column) {
      if (table->table().headerData(column, Qt::Horizontal, Qt::DisplayRole).toString() == last) break;
      wanted += column == 0 ? kLeastNames : table->columnWidth(column);
    }
    const int most = split_->width() - kLeastSentences, usual = split_->width() * 58 / 100;
    const int right = std::max(usual, std::min(wanted + kUsualNames - kLeastNames, most));
    split_->setSizes({split_->width() - right, right});
  }
  table->shrink_first_column(kLeastNames);
}

void CompareView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  split_->setOrientation(width() > 900 || width() > height() * 3 / 2 ? Qt::Horizontal : Qt::Vertical);
  if (split_->isVisible()) give_room();
}

}  // namespace rehearse::gui
