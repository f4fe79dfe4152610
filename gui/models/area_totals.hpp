// What lies in a stretch of time over some rows: totals by kind and by name.
#pragma once

#include <QAbstractTableModel>
#include <atomic>

#include "gui/models/mipmap.hpp"
#include "gui/models/session.hpp"

namespace rehearse::gui {

struct AreaTotal {
  std::string name;
  Style style = 0;         // of kinds, and of names that of most spans
  std::int64_t count = 0;  // spans that lie in it at least in part
  Time total = 0;          // of their parts inside
  Time least = 0, most = 0;
  double share = 0;  // of the area: its time x its rows
  double mean() const { return count > 0 ? static_cast<double>(total) / static_cast<double>(count) : 0; }
};
struct AreaTotals {
  TimeRange range;
  std::size_t rows = 0;
  std::int64_t spans = 0;
  std::vector<AreaTotal> by_kind, by_name;  // the greatest first
};
// `rows` of one timeline, `range` in its time.
struct AreaPart {
  std::shared_ptr<const Timeline> timeline;
  TimeRange range;
  std::vector<int> rows;
};
std::vector<AreaPart> parts_of(const Area& area, const Session& session);
std::size_t spans_in(const std::vector<AreaPart>& parts);  // to know whether it takes long
AreaTotals totals_of(const std::vector<AreaPart>& parts, const std::atomic<bool>& cancelled);
// "forward", "communication": compute by its pass, everything else by its kind.
std::string style_name(Style style);

// Either table. Under Qt::UserRole a cell's number, to sort by; DecorationRole is left to the view, which
// finds the style under StyleRole.
class AreaTotalsModel : public QAbstractTableModel {
  Q_OBJECT
public:
  enum Column { kName, kCount, kTotal, kMean, kLeast, kMost, kShare, kColumns };
  static constexpr int StyleRole = Qt::UserRole + 1;
  using QAbstractTableModel::QAbstractTableModel;
  void set_totals(std::vector<AreaTotal> totals);
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
  std::vector<AreaTotal> totals_;
};

}  // namespace rehearse::gui
