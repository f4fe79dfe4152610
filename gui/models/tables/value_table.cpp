#include "gui/models/tables/value_table.hpp"

#include <QFont>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "simulator/report/format.hpp"

namespace rehearse::gui {
namespace {

template <std::size_t n>
Unit unit_of(double largest, const std::array<std::pair<double, const char*>, n>& units) {
  for (const auto& [size, name] : units)
    if (std::abs(largest) >= size) return {1 / size, QString::fromLatin1(name)};
  return {1 / units.back().first, QString::fromLatin1(units.back().second)};
}

constexpr std::array<std::pair<double, const char*>, 4> kSeconds = {
    {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
constexpr std::array<std::pair<double, const char*>, 5> kBytes = {
    {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};

}  // namespace

void ValueTable::set(TableData data) {
  beginResetModel();
  data_ = std::move(data);
  endResetModel();
}

int ValueTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(data_.rows.size());
}

int ValueTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(data_.columns.size());
}

QVariant ValueTable::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid)) return {};
  const auto column = static_cast<std::size_t>(index.column());
  const Cell& cell = data_.rows[static_cast<std::size_t>(index.row())][column];
  switch (role) {
    case Qt::DisplayRole:
      return cell.text;
    case Qt::ToolTipRole:
      return cell.tip.isEmpty() ? cell.text : cell.tip;
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(
          Qt::Alignment((data_.columns[column].numbers ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    case kSortRole:
      if (!std::isnan(cell.number)) return cell.number;
      return data_.columns[column].numbers ? QVariant(-std::numeric_limits<double>::infinity())
                                           : QVariant(cell.text);
    case kToneRole:
      return static_cast<int>(cell.tone);
    case kKindRole:
      return cell.kind ? static_cast<int>(*cell.kind) : -1;
    case kPlaceRole: {
      if (data_.places.empty()) return 0;
      const TableData::Place& place = data_.places[static_cast<std::size_t>(index.row())];
      return 2 * place.block + (place.heading ? 0 : 1);
    }
    case Qt::FontRole: {
      if (data_.places.empty() || !data_.places[static_cast<std::size_t>(index.row())].heading) return {};
      QFont bold;
      bold.setBold(true);
      return bold;
    }
    default:
      return {};
  }
}

QVariant ValueTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const Column& column = data_.columns[static_cast<std::size_t>(section)];
  switch (role) {
    case Qt::DisplayRole:
      return column.title;
    case Qt::ToolTipRole:
      return column.tip.isEmpty() ? column.title : column.tip;
    case Qt::TextAlignmentRole:
      return QVariant::fromValue(
          Qt::Alignment((column.numbers ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    default:
      return {};
  }
}

Unit unit_of_seconds(double largest_s) {
  return unit_of(largest_s, kSeconds);
}
Unit unit_of_bytes(double largest) {
  return unit_of(largest, kBytes);
}
Unit unit_of_bytes_per_s(double largest) {
  Unit unit = unit_of(largest, kBytes);
  unit.name += "/s";
  return unit;
}

QString number_text(double value, int digits) {
  if (!std::isfinite(value)) return {};
  // Four decimals, unless the value would round to nearly nothing.
  const bool small = value != 0 && std::abs(value) < 1;
  if (!small || std::abs(value) < 0.0005)
    return QString::fromStdString(with_digits(value, small ? 2 : digits));
  return QString::number(value, 'f', std::min(digits, 4));
}

QString signed_number_text(double value, int digits) {
  if (!std::isfinite(value)) return {};
  return value == 0 ? QStringLiteral("0") : (value > 0 ? "+" : "") + number_text(value, digits);
}

QString signed_percent_text(double share) {
  if (!std::isfinite(share)) return {};
  const double percent = std::round(share * 1000) / 10;
  if (percent == 0) return QStringLiteral("0.0 %");
  // For changes of 1000 % or more, tenths of a percent are insignificant.
  const bool large = std::abs(percent) >= 1000;
  const QString digits =
      large ? QString::fromStdString(with_digits(percent, 4)) : QString::number(percent, 'f', 1);
  return (percent > 0 ? "+" : "") + digits + " %";
}

Cell number_cell(double value, int digits) {
  return {number_text(value, digits), value};
}

Cell count_cell(double value) {
  return number_cell(value, std::abs(value - std::round(value)) < 1e-6 ? 1 : 3);
}

Cell text_cell(const QString& text, const QString& tip) {
  Cell cell;
  cell.text = text;
  cell.tip = tip;
  return cell;
}

QString as_text(const QAbstractItemModel& model, const QModelIndexList& selected) {
  std::set<int> columns;
  std::map<int, std::map<int, QString>> rows;
  for (const QModelIndex& index : selected) {
    columns.insert(index.column());
    rows[index.row()][index.column()] = index.data().toString();
  }
  QString text;
  const auto line = [&](const auto& of_column) {
    bool first = true;
    for (const int column : columns) {
      text += (first ? "" : "\t") + of_column(column);
      first = false;
    }
    text += '\n';
  };
  if (columns.empty()) return text;
  line([&](int column) { return model.headerData(column, Qt::Horizontal).toString(); });
  for (const auto& row : rows)
    line([&](int column) {
      const auto it = row.second.find(column);
      return it == row.second.end() ? QString() : it->second;
    });
  return text;
}

}  // namespace rehearse::gui
