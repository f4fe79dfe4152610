// Provides a table that sorts, filters and copies, and colours figures that became better or worse.
#pragma once

#include <QSortFilterProxyModel>
#include <QTableView>

#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

// Colour alone must not carry the meaning; use it together with a sign or a word.
QColor colour_of_tone(Tone tone, const QPalette& palette);

// Sorts and filters rows, and indents the titles of text columns like their texts.
class SortedTable : public QSortFilterProxyModel {
  Q_OBJECT
public:
  using QSortFilterProxyModel::QSortFilterProxyModel;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void show_only(std::vector<bool> rows);  // indexed by row of the table's data; empty shows all rows

protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;  // sorts within blocks

private:
  std::vector<bool> shown_;
};

class TableView : public QTableView {
  Q_OBJECT
public:
  explicit TableView(QWidget* parent = nullptr);

  // Replaces the rows; keeps the sorting if the columns keep their names.
  void set(TableData rows);
  // If not all columns are visible, shrinks the first one, but not below `least` pixels.
  void shrink_first_column(int least);
  void set_filter(const QString& text);  // shows rows that contain the text in any cell
  void show_only(std::vector<bool> rows) { sorted_.show_only(std::move(rows)); }  // empty shows all rows
  const ValueTable& table() const { return table_; }
  // Returns the current row in the table's data; -1 if there is none.
  int current_row() const;
  int row_of(const QModelIndex& index) const { return sorted_.mapToSource(index).row(); }
  void select_row(int row);
  void toggle_row(int row);                // selects or deselects it, leaving other rows as they are
  std::vector<int> selected_rows() const;  // in the displayed order
  QAction* copy_action() const { return copy_; }

signals:
  void row_activated(int row);  // on double click or Enter
  void current_row_changed(int row);
  void selection_changed();

protected:
  void keyPressEvent(QKeyEvent* event) override;  // copies selected rows; QTableView would copy one cell
  void currentChanged(const QModelIndex& current, const QModelIndex& previous) override;
  void selectionChanged(const QItemSelection& selected, const QItemSelection& deselected) override;

private:
  ValueTable table_;
  SortedTable sorted_;
  QAction* copy_ = nullptr;
};

}  // namespace rehearse::gui
