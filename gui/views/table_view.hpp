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
  void show_only(std::vector<bool> rows);  // of the table's data; empty: all

protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;  // within blocks

private:
  std::vector<bool> shown_;
};

class TableView : public QTableView {
  Q_OBJECT
public:
  explicit TableView(QWidget* parent = nullptr);

  // Keeps what it is sorted by while the columns keep their names.
  void set(TableData rows);
  // The first column gives way, down to `least`, where not all of them are in sight.
  void shrink_first_column(int least);
  void set_filter(const QString& text);  // rows that hold it in any cell
  void show_only(std::vector<bool> rows) { sorted_.show_only(std::move(rows)); }  // empty: all
  const ValueTable& table() const { return table_; }
  // The row of the table's data; -1: none is current.
  int current_row() const;
  int row_of(const QModelIndex& index) const { return sorted_.mapToSource(index).row(); }
  void select_row(int row);
  void toggle_row(int row);                // whether it is selected, beside others
  std::vector<int> selected_rows() const;  // as they stand in the table
  QAction* copy_action() const { return copy_; }

signals:
  void row_activated(int row);  // double click, Enter
  void current_row_changed(int row);
  void selection_changed();

protected:
  void keyPressEvent(QKeyEvent* event) override;  // copies rows, where a plain table copies one cell
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;
  void selectionChanged(const QItemSelection& selected, const QItemSelection& deselected) override;

private:
  ValueTable table_;
  SortedTable sorted_;
  QAction* copy_ = nullptr;
};

}  // namespace rehearse::gui
