// Models a table of texts and numbers for any view: what a cell shows, how it sorts, and what it means.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <limits>
#include <optional>
#include <vector>

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

// Whether a figure changed for the better or the worse; views color it accordingly, in addition to its sign.
enum class Tone { none, better, worse, notable };

struct Cell {
  QString text;
  double number = std::numeric_limits<double>::quiet_NaN();  // NaN: sorts by its text
  Tone tone = Tone::none;
  QString tip;               // empty: same as the text
  std::optional<Kind> kind;  // its color is shown before the text
};

struct Column {
  QString title;  // with the unit: "total (ms)"
  QString tip;
  bool numbers = true;  // right-aligned
};

struct TableData {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as there are columns
  // By row, ascending. Sorting keeps the rows of a block together, with headings before the others. Empty: a
  // single block without headings.
  struct Place {
    int block = 0;
    bool heading = false;
  };
  std::vector<Place> places;
};

class ValueTable : public QAbstractTableModel {
  Q_OBJECT
public:
  // kSortRole: key for QSortFilterProxyModel; kToneRole: a Tone as int; kKindRole: a Kind as int, -1: none;
  // kPlaceRole: the order of blocks, with separate numbers for headings and other rows.
  enum Role { kSortRole = Qt::UserRole, kToneRole, kKindRole, kPlaceRole };
  using QAbstractTableModel::QAbstractTableModel;

  void set(TableData data);
  const TableData& table() const { return data_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
  TableData data_;
};

// A common unit for the numbers of a column: for seconds up to 0.012, "ms" and a factor of 1e3.
struct Unit {
  double factor = 1;
  QString name;  // e.g. "ms"
};
Unit unit_of_seconds(double largest_s);
Unit unit_of_bytes(double largest);        // "GB", SI
Unit unit_of_bytes_per_s(double largest);  // "GB/s"
// Formats with four significant digits and grouping: "1,024", "0.01234"; empty if the value is not finite.
QString number_text(double value, int digits = 4);
QString signed_number_text(double value, int digits = 4);  // "+1.2", "-3", "0"
QString signed_percent_text(double share);                 // "+12.3 %"
Cell number_cell(double value, int digits = 4);
Cell count_cell(double value);  // without decimals if it is an integer
Cell text_cell(const QString& text, const QString& tip = {});
// Returns the selected rows for the clipboard, tab-separated, with a line of titles.
QString as_text(const QAbstractItemModel& model, const QModelIndexList& selected);

}  // namespace rehearse::gui
