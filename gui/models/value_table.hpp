// A table of texts and numbers for any view: what is shown, what it is sorted by, and what it means.
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <limits>
#include <optional>
#include <vector>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

// Whether a figure changed to the better or the worse: views give it a colour beside its sign.
enum class Tone { none, better, worse, notable };

struct Cell {
  QString text;
  double number = std::numeric_limits<double>::quiet_NaN();  // NaN: sorted by its text
  Tone tone = Tone::none;
  QString tip;               // empty: the text
  std::optional<Kind> kind;  // whose colour stands before the text
};

struct Column {
  QString title;  // with the unit: "total (ms)"
  QString tip;
  bool numbers = true;  // stand right
};

struct TableData {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // of as many cells as there are columns
  // By row, ascending: rows of a block stay together, however they are sorted, the headings before the
  // others. Empty: all are one block without headings.
  struct Place {
    int block = 0;
    bool heading = false;
  };
  std::vector<Place> places;
};

class ValueTable : public QAbstractTableModel {
  Q_OBJECT
public:
  // What QSortFilterProxyModel sorts by; a Tone as int; a Kind as int, -1: none; the order of blocks, to
  // which headings and rows have different numbers.
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

// Numbers of a column, all in one unit: "total (ms)" and 1e3 for seconds of which the largest is 0.012.
struct Unit {
  double factor = 1;
  QString name;  // "ms"
};
Unit unit_of_seconds(double largest_s);
Unit unit_of_bytes(double largest);        // "GB", SI
Unit unit_of_bytes_per_s(double largest);  // "GB/s"
// Four significant digits, grouped: "1,024", "0.01234"; empty: not finite.
QString number_text(double value, int digits = 4);
QString signed_number_text(double value, int digits = 4);  // "+1.2", "-3", "0"
QString signed_percent_text(double share);                 // "+12.3 %"
Cell number_cell(double value, int digits = 4);
Cell count_cell(double value);  // without a fraction where it is a whole number
Cell text_cell(const QString& text, const QString& tip = {});
// The rows of the selection, tab-separated under their titles, for the clipboard.
QString as_text(const QAbstractItemModel& model, const QModelIndexList& selected);

}  // namespace rehearse::gui
