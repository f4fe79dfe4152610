// Tables of the busiest links and of what uses one of them when.
#pragma once

#include <QAbstractTableModel>
#include <string>
#include <vector>

#include "gui/models/link_use.hpp"
#include "gui/models/row_spans.hpp"

namespace rehearse::gui {

inline constexpr int kLinkSortRole = Qt::UserRole + 1;  // of all tables of links: what a column is sorted by

// An op that uses a link within a stretch of time.
struct LinkUser {
  std::size_t row = 0;  // of the trace
  SpanId span = kNoSpan;
  std::string op, rank, kind;  // kind: "gradient sync"
  Time begin = 0, end = 0;     // of the timeline
  double bytes = 0;            // on the link within the stretch
  double share = 0;            // of all that the link carries in it
};
struct KindOfUse {
  std::string kind;
  int users = 0;
  double bytes = 0, share = 0;
};
struct UsersOfLink {
  std::vector<LinkUser> users;   // by their begin; at most as many as asked for, those with the most bytes
  std::size_t left_out = 0;      // others
  std::vector<KindOfUse> kinds;  // of all, the most bytes first
  double bytes = 0;
};
UsersOfLink users_of(const LinkUsage& usage, const Trace& trace, const RowSpans& spans, LinkId link,
                     double begin_s, double end_s, std::size_t most);

class LinkUsersModel : public QAbstractTableModel {
  Q_OBJECT
public:
  enum Column { op, begin, end, bytes, share, rank, columns };
  using QAbstractTableModel::QAbstractTableModel;
  // `aligned`: what is shown as the time 0.
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
std::string time_range_text(TimeRange range);  // "12.3-14.5 s"

}  // namespace rehearse::gui
