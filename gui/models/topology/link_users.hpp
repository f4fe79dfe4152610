// Provides tables of the busiest links and of the transfers that use a link.
#pragma once

#include <QAbstractTableModel>
#include <string>
#include <vector>

#include "gui/models/timeline/row_spans.hpp"
#include "gui/models/topology/link_use.hpp"

namespace rehearse::gui {

inline constexpr int kLinkSortRole = Qt::UserRole + 1;  // sort key of a cell, in all tables of links

// An op that uses a link within a time range.
struct LinkUser {
  std::size_t row = 0;  // in the trace
  SpanId span = kNoSpan;
  std::string op, rank, kind;  // kind: "gradient sync"
  Time begin = 0, end = 0;     // in the timeline's time
  double bytes = 0;            // on the link within the range
  double share = 0;            // of everything the link carries in the range
};
struct KindOfUse {
  std::string kind;
  int users = 0;
  double bytes = 0, share = 0;
};
struct UsersOfLink {
  std::vector<LinkUser> users;   // sorted by begin; the ones with the most bytes, up to the requested number
  std::size_t left_out = 0;      // users beyond that number
  std::vector<KindOfUse> kinds;  // over all users, the most bytes first
  double bytes = 0;
};
UsersOfLink users_of(const LinkUsage& usage, const Trace& trace, const RowSpans& spans, LinkId link,
                     double begin_s, double end_s, std::size_t most);

class LinkUsersModel : public QAbstractTableModel {
  Q_OBJECT
public:
  enum Column { op, begin, end, bytes, share, rank, columns };
  using QAbstractTableModel::QAbstractTableModel;
  // `aligned` is the time that is shown as 0.
  void set_users(std::vector<LinkUser> users, Time aligned);
  const LinkUser& user(int row) const { return users_[row]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
  std::vector<LinkUser> users_;
  Time aligned_ = 0;
};

class BusiestLinksModel : public QAbstractTableModel {
  Q_OBJECT
public:
  enum Column { link, use, carried, capacity, alike, columns };
  using QAbstractTableModel::QAbstractTableModel;
  struct Line {
    std::string name;
    LinkUsage::Busy busy;
    double capacity = 0;
  };
  void set_links(std::vector<Line> links);
  const Line& line(int row) const { return links_[row]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
  std::vector<Line> links_;
};

std::string bytes_text(double bytes);          // "12.3 GB", powers of 1000
std::string rate_text(double bytes_per_s);     // "25 GB/s", powers of 1000
std::string share_text(double share);          // "64 %", "1.1 %", "0.02 %"
std::string time_range_text(TimeRange range);  // "12.3 to 14.5 s"

}  // namespace rehearse::gui
