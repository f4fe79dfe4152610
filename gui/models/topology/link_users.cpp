#include "gui/models/topology/link_users.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "simulator/report/rank_names.hpp"
#include "simulator/trace/causes.hpp"
#include "simulator/trace/rows.hpp"

namespace rehearse::gui {

namespace {

// Formats with three digits and a suitable unit.
std::string scaled(double value, const std::array<const char*, 6>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  const int digits = unit == 0 || std::abs(value) >= 99.95 || value == std::floor(value) ? 0
                     : std::abs(value) >= 9.995                                          ? 1
                                                                                         : 2;
  return fmt::format("{:.{}f} {}", value, digits, units[unit]);
}

QString text(const std::string& utf8) {
  return QString::fromStdString(utf8);
}

QVariant aligned_right(bool right) {
  return QVariant::fromValue(Qt::Alignment((right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
}

}  // namespace

std::string bytes_text(double bytes) {
  return scaled(bytes, {"B", "kB", "MB", "GB", "TB", "PB"});
}

std::string rate_text(double bytes_per_s) {
  return scaled(bytes_per_s, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"});
}

std::string share_text(double share) {
  const double percent = 100 * share;
  if (percent == 0) return "0 %";
  if (percent < 0.01) return "< 0.01 %";
  return fmt::format("{:.{}f} %", percent, percent >= 9.95 ? 0 : percent >= 0.995 ? 1 : 2);
}

std::string time_range_text(TimeRange range) {
  // Uses the unit of the larger time for both, with enough digits to distinguish them.
  struct Unit {
    double ns;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits = {{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
  const double most =
      std::max(std::abs(static_cast<double>(range.begin)), std::abs(static_cast<double>(range.end)));
  const Unit* unit = &kUnits.back();
  for (const Unit& one : kUnits)
    if (most >= one.ns) {
      unit = &one;
      break;
    }
  const double length = static_cast<double>(std::max<Time>(1, range.length())) / unit->ns;
  const int digits =
      unit->ns == 1 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(length))), 0, 9);
  const auto number = [&](Time time) {
    const std::string written = fmt::format("{:.{}f}", static_cast<double>(time) / unit->ns, digits);
    return written.find_first_not_of("-0.") == std::string::npos ? std::string("0") : written;
  };
  return fmt::format("{} to {} {}", number(range.begin), number(range.end), unit->name);
}

UsersOfLink users_of(const LinkUsage& usage, const Trace& trace, const RowSpans& spans, LinkId link,
                     double begin_s, double end_s, std::size_t most) {
  UsersOfLink result;
  std::map<std::string, KindOfUse> kinds;
  std::map<int, std::string> ranks;  // names of the rank classes
  std::vector<std::pair<double, std::size_t>> order;
  const std::vector<LinkUsage::User> users = usage.users(link, begin_s, end_s);
  std::vector<double> within;
  for (const LinkUsage::User& user : users) {
    const double from = trace.spans.begin_s[user.row], to = trace.spans.end_s[user.row];
    const double bytes =
        to > from ? user.bytes * (std::min(end_s, to) - std::max(begin_s, from)) / (to - from) : user.bytes;
    order.emplace_back(bytes, within.size());
    within.push_back(bytes);
    result.bytes += bytes;
    KindOfUse& kind = kinds[waiting(trace.op_of(user.row).purpose)];
    kind.bytes += bytes;
    ++kind.users;
  }
  for (auto& [name, kind] : kinds) {
    kind.kind = name;
    kind.share = result.bytes > 0 ? kind.bytes / result.bytes : 0;
    result.kinds.push_back(kind);
  }
  std::stable_sort(result.kinds.begin(), result.kinds.end(),
                   [](const KindOfUse& a, const KindOfUse& b) { return a.bytes > b.bytes; });
  if (order.size() > most) {
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    result.left_out = order.size() - most;
    order.resize(most);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  for (const auto& [bytes, i] : order) {
    const std::size_t row = users[i].row;
    const Op& op = trace.op_of(row);
    const int rank_class = trace.spans.rank_class[row];
    std::string& rank = ranks[rank_class];
    if (rank.empty()) rank = class_name(trace, rank_class);
    result.users.push_back({row, spans.span_of(row), op.name, rank, waiting(op.purpose),
                            spans.time_of(trace.spans.begin_s[row]), spans.time_of(trace.spans.end_s[row]),
                            bytes, result.bytes > 0 ? bytes / result.bytes : 0});
  }
  return result;
}

void LinkUsersModel::set_users(std::vector<LinkUser> users, Time aligned) {
  beginResetModel();
  users_ = std::move(users);
  aligned_ = aligned;
  endResetModel();
}

int LinkUsersModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(users_.size());
}

int LinkUsersModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant LinkUsersModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const LinkUser& user = users_[index.row()];
  if (role == Qt::TextAlignmentRole) return aligned_right(index.column() >= begin && index.column() < rank);
  if (role == Qt::ToolTipRole)
    return text(fmt::format("{}, {}\n{}: {} to {}, {} on this link", user.op, user.rank, user.kind,
                            duration_text(user.begin - aligned_), duration_text(user.end - aligned_),
                            bytes_text(user.bytes)));
  if (role == kLinkSortRole) switch (index.column()) {
      case op:
        return text(user.op);
      case rank:
        return text(user.rank);
      case begin:
        return static_cast<qlonglong>(user.begin);
      case end:
        return static_cast<qlonglong>(user.end);
      default:
        return user.bytes;
    }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case op:
      return text(user.op);
    case rank:
      return text(user.rank);
    case begin:
      return text(duration_text(user.begin - aligned_));
    case end:
      return text(duration_text(user.end - aligned_));
    case bytes:
      return text(bytes_text(user.bytes));
    case share:
      return text(share_text(user.share));
    default:
      return {};
  }
}

QVariant LinkUsersModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
  static constexpr std::array<const char*, columns> kNames = {"Op", "Begin", "End", "Bytes", "Share", "Rank"};
  if (role == Qt::TextAlignmentRole) return aligned_right(section >= begin && section < rank);
  return role == Qt::DisplayRole ? QVariant(kNames[section]) : QVariant();
}

void BusiestLinksModel::set_links(std::vector<Line> links) {
  beginResetModel();
  links_ = std::move(links);
  endResetModel();
}

int BusiestLinksModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(links_.size());
}

int BusiestLinksModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : columns;
}

QVariant BusiestLinksModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Line& line = links_[index.row()];
  const std::string name =
      line.busy.like_it == 0 ? line.name : fmt::format("{} and {} like it", line.name, line.busy.like_it);
  if (role == Qt::TextAlignmentRole) return aligned_right(index.column() >= use);
  if (role == Qt::ToolTipRole)
    return text(fmt::format("{}\n{} of {} used, {} carried", name, share_text(line.busy.use),
                            rate_text(line.capacity), bytes_text(line.busy.bytes)));
  if (role == kLinkSortRole) switch (index.column()) {
      case link:
        return text(line.name);
      case use:
        return line.busy.use;
      case carried:
        return line.busy.bytes;
      case capacity:
        return line.capacity;
      default:
        return line.busy.like_it;
    }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case link:
      return text(line.name);
    case use:
      return text(share_text(line.busy.use));
    case carried:
      return text(bytes_text(line.busy.bytes));
    case capacity:
      return text(rate_text(line.capacity));
    case alike:
      return line.busy.like_it == 0 ? QVariant() : text(fmt::format("+ {}", line.busy.like_it));
    default:
      return {};
  }
}

QVariant BusiestLinksModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
  static constexpr std::array<const char*, columns> kNames = {"Link", "Used", "Carried", "Capacity", "Equal"};
  if (role == Qt::TextAlignmentRole) return aligned_right(section >= use);
  return role == Qt::DisplayRole ? QVariant(kNames[section]) : QVariant();
}

}  // namespace rehearse::gui
