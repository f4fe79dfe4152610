#include "gui/views/timeline/selection_view.hpp"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QSortFilterProxyModel>
#include <QStackedLayout>
#include <QStyledItemDelegate>
#include <QTableView>

#include "gui/views/parts/appearance.hpp"
#include "gui/views/parts/command.hpp"
#include "gui/views/timeline/row_painter.hpp"

namespace rehearse::gui {

namespace {

constexpr int kIndent = 6;                   // pixels before a table's first column
constexpr std::size_t kManySpans = 300'000;  // more spans than this are summed in the background

QPixmap swatch(Style style, const QWidget& widget) {
  const int size = widget.fontMetrics().ascent() + 2;
  QPixmap pixmap(QSize(size + 4, size) * widget.devicePixelRatioF());
  pixmap.setDevicePixelRatio(widget.devicePixelRatioF());
  QPainter painter(&pixmap);
  paint_swatch(painter, QRect(0, 0, size + 4, size), style, is_dark(widget.palette()));
  return pixmap;
}

// Draws the value of a field that leads to another span like a link.
class LinkDelegate : public QStyledItemDelegate {
public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    return QStyledItemDelegate::sizeHint(option, index) + QSize(2 * kIndent, 0);
  }

protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    if (index.column() == 0) {
      option->rect.adjust(kIndent, 0, 0, 0);
      QColor weak = option->palette.color(QPalette::Text);
      weak.setAlpha(165);
      option->palette.setColor(QPalette::Text, weak);
    }
    if (index.column() == 1 && index.data(SpanDetailsModel::LinkRole).isValid()) {
      option->palette.setColor(QPalette::Text, option->palette.color(QPalette::Link));
      option->font.setUnderline(true);
    }
  }
};

// Accepts either the fields that are links or all others.
class FieldFilter : public QSortFilterProxyModel {
public:
  FieldFilter(bool links, QObject* parent) : QSortFilterProxyModel(parent), links_(links) {}

protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override {
    return sourceModel()->index(row, 1, parent).data(SpanDetailsModel::LinkRole).isValid() == links_;
  }

private:
  bool links_;
};

// Draws a swatch before names and a bar behind shares.
class TotalsDelegate : public QStyledItemDelegate {
public:
  using QStyledItemDelegate::QStyledItemDelegate;

protected:
  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    if (index.column() != AreaTotalsModel::kName || !option->widget) return;
    option->features |= QStyleOptionViewItem::HasDecoration;
    const QPixmap pixmap =
        swatch(static_cast<Style>(index.data(AreaTotalsModel::StyleRole).toUInt()), *option->widget);
    option->icon = QIcon(pixmap);
    option->decorationSize = pixmap.deviceIndependentSize().toSize();
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    QStyledItemDelegate::paint(painter, option, index);
    if (index.column() != AreaTotalsModel::kShare) return;
    const double share = std::clamp(index.data(Qt::UserRole).toDouble(), 0.0, 1.0);
    QColor colour = colour_of(kind_of(static_cast<Style>(index.data(AreaTotalsModel::StyleRole).toUInt())),
                              pass_of(static_cast<Style>(index.data(AreaTotalsModel::StyleRole).toUInt())),
                              is_dark(option.palette));
    const QRect room = option.rect.adjusted(4, 0, -4, 0);
    painter->fillRect(QRectF(room.x(), room.bottom() - 3, room.width() * share, 3), colour);
  }
};

}  // namespace

SelectionView::SelectionView(Session& session, ViewState& state, QWidget* parent)
    : QWidget(parent), session_(session), state_(state) {
  setAccessibleName(tr("Selection"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* line = new QWidget;
  auto* head = new QHBoxLayout(line);
  head->setContentsMargins(8, 5, 8, 5);
  swatch_ = new QLabel;
  heading_ = new QLabel;
  heading_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  heading_->setAccessibleName(tr("Selection"));
  heading_->setMinimumWidth(40);
  by_ = new QComboBox;
  by_->addItems({tr("By kind"), tr("By name")});
  by_->setAccessibleName(tr("Totals by"));
  by_->setToolTip(tr("Choose whether to add up by kind or by name"));
  head->addWidget(swatch_);
  head->addWidget(heading_, 1);
  head->addWidget(by_);
  column->addWidget(line);
  auto* pages = new QWidget;
  stack_ = new QStackedLayout(pages);
  auto* nothing = new QLabel(tr("Click a span for its details, or drag over the tracks to add up an area."));
  nothing->setAlignment(Qt::AlignCenter);
  nothing->setWordWrap(true);
  stack_->addWidget(nothing);

  auto* both = new QWidget;
  auto* beside = new QHBoxLayout(both);
  beside->setContentsMargins(0, 0, 0, 0);
  beside->setSpacing(8);
  details_table_ = make_details_table(false);
  links_table_ = make_details_table(true);
  details_table_->setAccessibleName(tr("Details of the span"));
  links_table_->setAccessibleName(tr("Related spans"));
  beside->addWidget(details_table_, 1);
  beside->addWidget(links_table_, 1);
  stack_->addWidget(both);

  sorted_ = new QSortFilterProxyModel(this);
  sorted_->setSourceModel(&totals_);
  sorted_->setSortRole(Qt::UserRole);
  totals_table_ = new QTableView;
  totals_table_->setModel(sorted_);
  totals_table_->setAccessibleName(tr("Totals of the area"));
  totals_table_->setSortingEnabled(true);
  totals_table_->sortByColumn(AreaTotalsModel::kTotal, Qt::DescendingOrder);
  totals_table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  totals_table_->horizontalHeader()->setSectionResizeMode(AreaTotalsModel::kName, QHeaderView::Stretch);
  totals_table_->setItemDelegate(new TotalsDelegate(this));
  stack_->addWidget(totals_table_);
  for (QTableView* table : {details_table_, links_table_, totals_table_}) {
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 7);
    table->setShowGrid(false);
    table->setFrameShape(QFrame::NoFrame);
    table->setAlternatingRowColors(true);
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setWordWrap(false);
    table->setTabKeyNavigation(false);
    table->installEventFilter(this);
  }
  column->addWidget(pages, 1);
  connect(by_, &QComboBox::currentIndexChanged, this,
          [this](int by) { totals_.set_totals(by == 0 ? both_.by_kind : both_.by_name); });
  connect(&state_, &ViewState::selection_changed, this, &SelectionView::follow);
  connect(&session_, &Session::run_changed, this, &SelectionView::follow);
  connect(&session_, &Session::runs_changed, this, &SelectionView::follow);
  add_command(*this,
              {menu::edit,
               tr("Copy &table"),
               {QKeySequence::Copy},
               tr("Copy the selected lines of the table, or all of them")},
              [this] { copy(); });
  follow();
}

QTableView* SelectionView::make_details_table(bool links) {
  auto* table = new QTableView;
  auto* some = new FieldFilter(links, this);
  some->setSourceModel(&details_);
  table->setModel(some);
  table->horizontalHeader()->hide();
  table->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  table->horizontalHeader()->setStretchLastSection(true);
  table->setItemDelegate(new LinkDelegate(this));
  connect(table, &QTableView::clicked, this, &SelectionView::follow_link);
  return table;
}

QAbstractItemModel* SelectionView::shown_table() {
  if (stack_->currentIndex() == 1) return &details_;
  if (stack_->currentIndex() == 2) return sorted_;
  return nullptr;
}

void SelectionView::follow() {
  adding_.cancel();
  const auto& selected = state_.selected();
  const auto run = selected ? session_.run(selected->run) : nullptr;
  if (run && run->timeline && selected->span < run->timeline->spans.size()) return show_span(*selected);
  if (state_.area()) return show_area(*state_.area());
  details_.set_details({});
  totals_.set_totals({});
  swatch_->hide();
  by_->hide();
  heading_->setText(tr("Nothing is selected"));
  stack_->setCurrentIndex(0);
}

void SelectionView::show_span(SpanRef span) {
  const auto run = session_.run(span.run);
  const SpanColumns& spans = run->timeline->spans;
  details_.set_details(details_of(*run, span.span));
  swatch_->setPixmap(swatch(style_of(spans.kind[span.span], spans.pass[span.span]), *this));
  swatch_->show();
  by_->hide();
  links_table_->setVisible(links_table_->model()->rowCount() > 0);
  QString text =
      QStringLiteral("<b>%1</b>").arg(QString::fromStdString(details_.details().title).toHtmlEscaped());
  if (session_.shown().size() > 1)
    text += QStringLiteral(" &nbsp; %1").arg(QString::fromStdString(run->name).toHtmlEscaped());
  heading_->setText(text);
  stack_->setCurrentIndex(1);
}

void SelectionView::show_area(const Area& area) {
  swatch_->hide();
  by_->show();
  stack_->setCurrentIndex(2);
  auto parts = parts_of(area, session_);
  if (parts.empty()) {
    take_totals({});
    return heading_->setText(
        tr("<b>%1</b> &nbsp; no track is chosen; choose tracks with the boxes next to their names")
            .arg(QString::fromStdString(duration_text(area.range.length()))));
  }
  if (spans_in(parts) <= kManySpans) {
    take_totals(totals_of(parts, false));
    return;
  }
  heading_->setText(tr("adding up ..."));
  adding_.ask(
      [parts = std::move(parts)](const std::atomic<bool>& cancelled) { return totals_of(parts, cancelled); },
      [this](const AreaTotals& totals) { take_totals(totals); });
}

void SelectionView::take_totals(const AreaTotals& totals) {
  both_ = totals;
  totals_.set_totals(by_->currentIndex() == 0 ? both_.by_kind : both_.by_name);
  heading_->setText(tr("<b>%1</b> &nbsp; %2 rows, %3 spans")
                        .arg(QString::fromStdString(duration_text(totals.range.length())))
                        .arg(totals.rows)
                        .arg(QLocale::c().toString(qlonglong{totals.spans})));
}

void SelectionView::follow_link(const QModelIndex& index) {
  const QVariant link = index.siblingAtColumn(1).data(SpanDetailsModel::LinkRole);
  if (link.isValid() && state_.selected()) state_.select(SpanRef{state_.selected()->run, link.toUInt()});
}

void SelectionView::copy() {
  QTableView* table = stack_->currentIndex() == 2 ? totals_table_
                      : links_table_->hasFocus()  ? links_table_
                                                  : details_table_;
  if (stack_->currentIndex() == 0) return;
  QModelIndexList rows = table->selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end());
  const auto* model = table->model();
  if (rows.isEmpty())
    for (int r = 0; r < model->rowCount(); ++r) rows << model->index(r, 0);
  QString text;
  for (const QModelIndex& row : rows)
    for (int c = 0; c < model->columnCount(); ++c)
      text +=
          row.siblingAtColumn(c).data().toString() + QLatin1Char(c + 1 < model->columnCount() ? '\t' : '\n');
  QApplication::clipboard()->setText(text);
}

bool SelectionView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress && watched == links_table_) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Return || key == Qt::Key_Enter) {
      follow_link(links_table_->currentIndex());
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

void SelectionView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange && stack_ && stack_->currentIndex() == 1) follow();
  QWidget::changeEvent(event);
}

}  // namespace rehearse::gui
