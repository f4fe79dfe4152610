// A table that sorts, filters and copies, with the colours of figures that became better or worse.
#pragma once

#include <QSortFilterProxyModel>
#include <QTableView>

#include "gui/models/value_table.hpp"

namespace rehearse::gui {

// Beside a sign or a word, never alone.
QColor colour_of_tone(Tone tone, const QPalette& palette);

// Titles of texts stand where the texts do, a little away from the numbers before them.
class SortedTable : public QSortFilterProxyModel {
  Q_OBJECT
public:
  using QSortFilterProxyModel::QSortFilterProxyModel;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
};

class TableView : public QTableView {
  Q_OBJECT
public:
  explicit TableView(QWidget* parent = nullptr);

  // Keeps what it is sorted by while the columns keep their names.
  void set(TableData rows);
  void set_filter(const QString& text);  // rows that hold it in any cell
  const ValueTable& table() const { return table_; }
  // The row of the table's data; -1: none is current.
  int current_row() const;
  void select_row(int row);
  QAction* copy_action() const { return copy_; }

signals:
  void row_activated(int row);  // double click, Enter
  void current_row_changed(int row);

protected:
  void keyPressEvent(QKeyEvent* event) override;  // copies rows, where a plain table copies one cell
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;

private:
  ValueTable table_;
  SortedTable sorted_;
  QAction* copy_ = nullptr;
};

}  // namespace rehearse::gui
