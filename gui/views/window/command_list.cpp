#include "gui/views/window/command_list.hpp"

#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>
#include <array>

#include "gui/views/parts/command.hpp"

namespace rehearse::gui {

namespace {

constexpr std::array<const char*, 4> kHeaders = {"Command", "Shortcut", "Menu", "Description"};

QString plain(QString text) {
  return text.remove('&').remove("...");
}

QString shortcuts_of(const QAction& action) {
  QStringList texts;
  for (const QKeySequence& sequence : action.shortcuts())
    texts << sequence.toString(QKeySequence::NativeText);
  return texts.join(", ");
}

// A search field whose Up and Down keys move through the table.
class SearchField : public QLineEdit {
public:
  explicit SearchField(QTableView*& table) : table_(table) {}

protected:
  void keyPressEvent(QKeyEvent* event) override {
    const bool moves = event->key() == Qt::Key_Up || event->key() == Qt::Key_Down ||
                       event->key() == Qt::Key_PageUp || event->key() == Qt::Key_PageDown;
    if (!moves) return QLineEdit::keyPressEvent(event);
    const int by = event->key() == Qt::Key_Up || event->key() == Qt::Key_PageUp ? -1 : 1;
    const int far = event->key() == Qt::Key_PageUp || event->key() == Qt::Key_PageDown ? 10 : 1;
    const int rows = table_->model()->rowCount();
    if (rows > 0) table_->selectRow(std::clamp(table_->currentIndex().row() + by * far, 0, rows - 1));
  }

private:
  QTableView*& table_;
};

}  // namespace

CommandModel::CommandModel(std::vector<QAction*> actions, QObject* parent)
    : QAbstractTableModel(parent), actions_(std::move(actions)) {}

int CommandModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(actions_.size());
}

int CommandModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(kHeaders.size());
}

QVariant CommandModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const QAction& action = *actions_[static_cast<std::size_t>(index.row())];
  if (role == Qt::ForegroundRole && !action.isEnabled())
    return QPalette().brush(QPalette::Disabled, QPalette::Text);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case 0:
      return plain(action.text());
    case 1:
      return shortcuts_of(action);
    case 2:
      return plain(menu_of(action)).replace(menu::kBelow, QLatin1String(" > "));
    default:
      return action.statusTip();
  }
}

QVariant CommandModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return QString::fromLatin1(kHeaders.at(static_cast<std::size_t>(section)));
}

CommandList::CommandList(std::vector<QAction*> actions, QWidget* parent)
    : QDialog(parent), model_(new CommandModel(std::move(actions), this)) {
  setWindowTitle("Commands and shortcuts");
  setAccessibleName(windowTitle());
  resize(880, 620);
  search_ = new SearchField(table_);
  search_->setPlaceholderText("Find a command; Enter runs it");
  search_->setAccessibleName("Find a command");
  search_->setClearButtonEnabled(true);
  auto* filtered = new QSortFilterProxyModel(this);
  filtered->setSourceModel(model_);
  filtered->setFilterCaseSensitivity(Qt::CaseInsensitive);
  filtered->setFilterKeyColumn(-1);
  table_ = new QTableView;
  table_->setModel(filtered);
  table_->setAccessibleName("Commands");
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setSortingEnabled(true);
  table_->sortByColumn(2, Qt::AscendingOrder);
  table_->setShowGrid(false);
  table_->setAlternatingRowColors(true);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->setColumnWidth(0, 240);
  table_->setColumnWidth(1, 150);
  table_->setColumnWidth(2, 150);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(search_);
  layout->addWidget(table_);
  connect(search_, &QLineEdit::textChanged, this, [this, filtered](const QString& text) {
    filtered->setFilterFixedString(text);
    table_->selectRow(0);
  });
  connect(search_, &QLineEdit::returnPressed, this, &CommandList::run_chosen);
  connect(table_, &QTableView::activated, this, &CommandList::run_chosen);
  table_->selectRow(0);
  search_->setFocus();
}

void CommandList::run_chosen() {
  const QModelIndex chosen = table_->currentIndex();
  if (!chosen.isValid()) return;
  const auto* filtered = static_cast<const QSortFilterProxyModel*>(table_->model());
  QAction* action = model_->action(filtered->mapToSource(chosen).row());
  accept();
  if (action->isEnabled()) action->trigger();
}

}  // namespace rehearse::gui
