// What is told of one span: its figures, what it waited for, and the spans it is tied to.
#pragma once

#include <QAbstractTableModel>

#include "gui/models/run.hpp"

namespace rehearse::gui {

// A span that another is tied to.
struct SpanLink {
  enum class Type {
    waited_for,  // the dependency, stream predecessor or peer that ended last
    dependency,
    previous,  // on its row
    sender,    // where its bytes, or its launch, came from
    receiver,
    dependent,
    next
  } type = Type::dependency;
  SpanId span = kNoSpan;
};
struct SpanDetails {
  std::string title;  // its name
  struct Field {
    std::string label, value;
    SpanId link = kNoSpan;
  };
  std::vector<Field> fields;
};

// Other spans of the same rank that an op came after, those that came after it, the neighbours on its row,
// and the ends of its arrows. waited_for stands first.
std::vector<SpanLink> links_of(const Timeline& timeline, SpanId span);
// Where [ and ] lead: along arrows if there are any, else to what it waited for and to its first dependent.
SpanId back_from(const Timeline& timeline, SpanId span);
SpanId forward_from(const Timeline& timeline, SpanId span);
SpanDetails details_of(const Run& run, SpanId span);

// nccl-tests: bytes on the busiest link per byte of the buffer; `kind`: "all-reduce", "all-gather" ...
double bus_factor(std::string_view kind, int members);
// "1.25 GB", "312 TFLOP/s": three or four digits, powers of 1000.
std::string amount_text(double value, std::string_view unit);

// The fields as a table of two columns; under LinkRole the span that a field leads to.
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
