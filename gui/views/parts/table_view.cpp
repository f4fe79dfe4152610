#include "gui/views/parts/table_view.hpp"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>
#include <algorithm>

#include "gui/views/parts/appearance.hpp"

namespace rehearse::gui {
namespace {

constexpr int kIndent = 4;    // pixels before a text column that follows numbers
constexpr int kRoom = 10;     // pixels beside a column's content
constexpr int kWidest = 340;  // greatest initial width of a column, in pixels

class Delegate : public QStyledItemDelegate {
public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override {
    QStyledItemDelegate::initStyleOption(option, index);
    const auto tone = static_cast<Tone>(index.data(ValueTable::kToneRole).toInt());
    if (tone != Tone::none) option->palette.setColor(QPalette::Text, colour_of_tone(tone, option->palette));
    const int kind = index.data(ValueTable::kKindRole).toInt();
    if (kind < 0) {
      // Indent texts, which would otherwise touch right-aligned numbers before them.
      if (index.column() > 0 && (option->displayAlignment & Qt::AlignLeft)) {
        option->features |= QStyleOptionViewItem::HasDecoration;
        option->decorationSize = QSize(kIndent, kIndent);
      }
      return;
    }
    const int size = option->fontMetrics.height() - 3;
    QPixmap swatch(size, size);
    swatch.fill(colour_of(static_cast<Kind>(kind), Pass::none, is_dark(option->palette)));
    const Qt::BrushStyle pattern = pattern_of(static_cast<Kind>(kind));
    if (pattern != Qt::SolidPattern) {
      QPainter painter(&swatch);
      painter.fillRect(swatch.rect(), QBrush(QColor(0, 0, 0, 90), pattern));
    }
    option->features |= QStyleOptionViewItem::HasDecoration;
    option->icon = QIcon(swatch);
    option->decorationSize = swatch.size();
  }
};

}  // namespace

QColor colour_of_tone(Tone tone, const QPalette& palette) {
  const bool dark = is_dark(palette);
  switch (tone) {
    case Tone::better:
      return dark ? QColor(0x6c, 0xb8, 0xf0) : QColor(0x00, 0x5a, 0x96);
    case Tone::worse:
    case Tone::notable:
      return dark ? QColor(0xf0, 0x9a, 0x5c) : QColor(0xa8, 0x48, 0x00);
    case Tone::none:
      break;
  }
  return palette.color(QPalette::Text);
}

QVariant SortedTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::DecorationRole && orientation == Qt::Horizontal && section > 0 &&
      headerData(section, orientation, Qt::TextAlignmentRole)
          .value<Qt::Alignment>()
          .testFlag(Qt::AlignLeft)) {
    QPixmap room(kIndent, kIndent);
    room.fill(Qt::transparent);
    return QIcon(room);
  }
  return QSortFilterProxyModel::headerData(section, orientation, role);
}

void SortedTable::show_only(std::vector<bool> rows) {
  shown_ = std::move(rows);
  invalidateFilter();
}

bool SortedTable::filterAcceptsRow(int row, const QModelIndex& parent) const {
  const auto place = static_cast<std::size_t>(row);
  return (place >= shown_.size() || shown_[place]) && QSortFilterProxyModel::filterAcceptsRow(row, parent);
}

bool SortedTable::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  const int a = left.data(ValueTable::kPlaceRole).toInt(), b = right.data(ValueTable::kPlaceRole).toInt();
  if (a != b) return (a < b) == (sortOrder() == Qt::AscendingOrder);
  return QSortFilterProxyModel::lessThan(left, right);
}

TableView::TableView(QWidget* parent) : QTableView(parent), table_(this), sorted_(this) {
  sorted_.setSourceModel(&table_);
  sorted_.setSortRole(ValueTable::kSortRole);
  sorted_.setSortCaseSensitivity(Qt::CaseInsensitive);
  sorted_.setFilterCaseSensitivity(Qt::CaseInsensitive);
  sorted_.setFilterKeyColumn(-1);
  setModel(&sorted_);
  setItemDelegate(new Delegate(this));
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setAlternatingRowColors(true);
  setShowGrid(false);
  setWordWrap(false);
  setTabKeyNavigation(false);
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 5);
  horizontalHeader()->setResizeContentsPrecision(100);
  horizontalHeader()->setHighlightSections(false);
  sortByColumn(-1, Qt::AscendingOrder);  // initially in the order of the data
  setSortingEnabled(true);

  copy_ = new QAction(tr("Copy rows"), this);
  copy_->setShortcut(QKeySequence::Copy);
  copy_->setShortcutContext(Qt::WidgetShortcut);
  copy_->setToolTip(tr("Copy the selected rows of the table with their titles, separated by tabs"));
  connect(copy_, &QAction::triggered, this, [this] {
    const QModelIndexList selected = selectionModel()->selectedIndexes();
    if (!selected.isEmpty()) QApplication::clipboard()->setText(as_text(sorted_, selected));
  });
  addAction(copy_);
  setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(this, &QAbstractItemView::activated, this,
          [this](const QModelIndex& index) { emit row_activated(sorted_.mapToSource(index).row()); });
}

void TableView::set(TableData rows) {
  QStringList was, is;
  for (const Column& column : table_.table().columns) was << column.title;
  for (const Column& column : rows.columns) is << column.title;
  table_.set(std::move(rows));
  if (was == is) return;
  if (was.size() != is.size()) sortByColumn(-1, Qt::AscendingOrder);
  resizeColumnsToContents();
  for (int column = 0; column < table_.columnCount(); ++column)
    setColumnWidth(column, std::min(columnWidth(column) + kRoom, kWidest));
}

void TableView::shrink_first_column(int least) {
  if (table_.columnCount() == 0) return;
  resizeColumnToContents(0);
  const int wanted = std::min(columnWidth(0) + kRoom, kWidest);
  const int over = horizontalHeader()->length() - columnWidth(0) + wanted - viewport()->width();
  setColumnWidth(0, std::max(std::min(least, wanted), wanted - std::max(0, over)));
}

void TableView::set_filter(const QString& text) {
  sorted_.setFilterFixedString(text);
}

int TableView::current_row() const {
  const QModelIndex index = sorted_.mapToSource(currentIndex());
  return index.isValid() ? index.row() : -1;
}

void TableView::select_row(int row) {
  const QModelIndex index = sorted_.mapFromSource(table_.index(row, 0));
  if (!index.isValid()) return;
  setCurrentIndex(index);
  scrollTo(index);
}

void TableView::toggle_row(int row) {
  const QModelIndex index = sorted_.mapFromSource(table_.index(row, 0));
  if (!index.isValid()) return;
  selectionModel()->setCurrentIndex(index, QItemSelectionModel::Toggle | QItemSelectionModel::Rows);
  scrollTo(index);
}

std::vector<int> TableView::selected_rows() const {
  QModelIndexList indexes = selectionModel()->selectedRows();
  std::sort(indexes.begin(), indexes.end());
  std::vector<int> rows;
  for (const QModelIndex& index : indexes) rows.push_back(sorted_.mapToSource(index).row());
  return rows;
}

void TableView::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy))
    copy_->trigger();
  else
    QTableView::keyPressEvent(event);
}

void TableView::currentChanged(const QModelIndex& current, const QModelIndex& previous) {
  QTableView::currentChanged(current, previous);
  if (current.isValid()) emit current_row_changed(sorted_.mapToSource(current).row());
}

void TableView::selectionChanged(const QItemSelection& selected, const QItemSelection& deselected) {
  QTableView::selectionChanged(selected, deselected);
  emit selection_changed();
}

}  // namespace rehearse::gui
