// Describes one span: its figures, what it waited for, and the spans it is connected to.
#pragma once

#include <QAbstractTableModel>

#include "gui/models/runs/run.hpp"

namespace rehearse::gui {

// A span that another one is connected to.
struct SpanLink {
  enum class Type {
    waited_for,  // the dependency, stream predecessor or peer that ended last
    dependency,
    previous,  // on its row
    sender,    // where its bytes or its launch came from
    receiver,
    dependent,
    next
  } type = Type::dependency;
  SpanId span = kNoSpan;
};
struct SpanDetails {
  std::string title;  // name of the span
  struct Field {
    std::string label, value;
    SpanId link = kNoSpan;
  };
  std::vector<Field> fields;
};

// Returns the spans of the same rank that the op depends on or that depend on it, its neighbors on the row,
// and the other ends of its arrows. waited_for comes first.
std::vector<SpanLink> links_of(const Timeline& timeline, SpanId span);
// Returns the spans that the keys [ and ] go to: along arrows if there are any, else to what the span waited
// for and to its first dependent.
SpanId back_from(const Timeline& timeline, SpanId span);
SpanId forward_from(const Timeline& timeline, SpanId span);
SpanDetails details_of(const Run& run, SpanId span);

// Returns the bytes on the busiest link per byte of the buffer, as nccl-tests defines it; `kind`:
// "all-reduce", "all-gather" ...
double bus_factor(std::string_view kind, int members);
// Returns e.g. "1.25 GB" or "312 TFLOP/s": three or four digits, powers of 1000.
std::string amount_text(double value, std::string_view unit);

// Table model with the fields in two columns. LinkRole gives the span that a field links to.
class SpanDetailsModel : public QAbstractTableModel {
  Q_OBJECT
public:
  static constexpr int LinkRole = Qt::UserRole + 1;
  using QAbstractTableModel::QAbstractTableModel;
  void set_details(SpanDetails details);
  const SpanDetails& details() const { return details_; }
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
  SpanDetails details_;
};

}  // namespace rehearse::gui
