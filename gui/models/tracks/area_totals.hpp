// Computes totals by kind and by name over a range of time on selected rows.
#pragma once

#include <QAbstractTableModel>
#include <atomic>

#include "gui/models/runs/session.hpp"
#include "gui/models/timeline/mipmap.hpp"

namespace rehearse::gui {

struct AreaTotal {
  std::string name;
  Style style = 0;         // of a kind; of a name, the style of its first span
  std::int64_t count = 0;  // spans that overlap the area
  Time total = 0;          // time of the parts inside
  Time least = 0, most = 0;
  double share = 0;  // of the area, which is its time x its rows
  double mean() const { return count > 0 ? static_cast<double>(total) / static_cast<double>(count) : 0; }
};
struct AreaTotals {
  TimeRange range;
  std::size_t rows = 0;
  std::int64_t spans = 0;
  std::vector<AreaTotal> by_kind, by_name;  // largest first
};
// Selected rows of one timeline; `range` is in that timeline's time.
struct AreaPart {
  std::shared_ptr<const Timeline> timeline;
  TimeRange range;
  std::vector<int> rows;
};
std::vector<AreaPart> parts_of(const Area& area, const Session& session);
std::size_t spans_in(const std::vector<AreaPart>& parts);  // estimates how long totals_of() takes
AreaTotals totals_of(const std::vector<AreaPart>& parts, const std::atomic<bool>& cancelled);
// Returns e.g. "forward" or "communication": names compute by its pass, everything else by its kind.
std::string style_name(Style style);

// Table model for either list. Qt::UserRole gives a cell's numeric value to sort by. The view paints the
// decoration itself from the style it gets under StyleRole.
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
