#include "gui/models/tracks/area_totals.hpp"

#include <fmt/format.h>

namespace rehearse::gui {

namespace {

void add(AreaTotal& total, Time inside) {
  total.least = total.count == 0 ? inside : std::min(total.least, inside);
  total.most = std::max(total.most, inside);
  total.total += inside;
  ++total.count;
}

// Drops empty totals, fills in the shares and sorts the largest first.
std::vector<AreaTotal> ranked(std::vector<AreaTotal> totals, double area) {
  std::erase_if(totals, [](const AreaTotal& total) { return total.count == 0; });
  for (AreaTotal& total : totals) total.share = static_cast<double>(total.total) / std::max(1.0, area);
  std::stable_sort(totals.begin(), totals.end(),
                   [](const AreaTotal& a, const AreaTotal& b) { return a.total > b.total; });
  return totals;
}

// Returns the first span of the row that overlaps the range and the one after the last.
std::pair<SpanId, SpanId> inside(const Timeline& timeline, const Row& row, TimeRange range) {
  const auto begins = timeline.spans.begin.begin();
  const SpanId first = timeline.first_after(row, range.begin);
  const auto last = std::lower_bound(begins + first, begins + row.last, range.end) - begins;
  return {first, static_cast<SpanId>(last)};
}

QString text(const std::string& s) {
  return QString::fromStdString(s);
}

}  // namespace

std::string style_name(Style style) {
  switch (pass_of(style)) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::optimizer:
      return "optimizer";
    case Pass::recompute:
      return "recompute";
    case Pass::weights:
      return "weight gradients";
    case Pass::none:
      break;
  }
  return std::string(kKindNames[static_cast<std::size_t>(kind_of(style))]);
}

std::vector<AreaPart> parts_of(const Area& area, const Session& session) {
  std::vector<AreaPart> parts;
  int run_id = 0;
  for (const auto& [run, row] : area.rows) {
    if (parts.empty() || run != run_id) {
      const auto found = session.run(run);
      if (!found || !found->timeline) continue;
      run_id = run;
      parts.push_back(
          {found->timeline, {area.range.begin + found->aligned, area.range.end + found->aligned}, {}});
    }
    if (row >= 0 && row < static_cast<int>(parts.back().timeline->rows.size()))
      parts.back().rows.push_back(row);
  }
  return parts;
}

std::size_t spans_in(const std::vector<AreaPart>& parts) {
  std::size_t sum = 0;
  for (const AreaPart& part : parts)
    for (const int row : part.rows) {
      const auto [first, last] =
          inside(*part.timeline, part.timeline->rows[static_cast<std::size_t>(row)], part.range);
      sum += last > first ? last - first : 0;
    }
  return sum;
}

AreaTotals totals_of(const std::vector<AreaPart>& parts, const std::atomic<bool>& cancelled) {
  AreaTotals result;
  std::vector<AreaTotal> kinds(kStyles);
  for (Style s = 0; s < kStyles; ++s) kinds[s] = {style_name(s), s};
  std::unordered_map<std::string_view, std::size_t> number;  // index into `names`, across all timelines
  std::vector<AreaTotal> names;
  double area = 0;
  for (const AreaPart& part : parts) {
    const Timeline& timeline = *part.timeline;
    const SpanColumns& spans = timeline.spans;
    std::vector<std::size_t> known(timeline.strings.size(), SIZE_MAX);
    result.range = {0, part.range.length()};
    result.rows += part.rows.size();
    area += static_cast<double>(part.range.length()) * static_cast<double>(part.rows.size());
    for (const int r : part.rows) {
      if (cancelled) return result;
      const auto [first, last] = inside(timeline, timeline.rows[static_cast<std::size_t>(r)], part.range);
      for (SpanId s = first; s < last; ++s) {
        const Time length =
            std::min(spans.end[s], part.range.end) - std::max(spans.begin[s], part.range.begin);
        const Style style = style_of(spans.kind[s], spans.pass[s]);
        add(kinds[style], length);
        std::size_t& name = known[spans.name[s]];
        if (name == SIZE_MAX) {
          const auto [it, is_new] = number.emplace(timeline.strings[spans.name[s]], names.size());
          if (is_new) names.push_back({std::string(it->first), style});
          name = it->second;
        }
        add(names[name], length);
        ++result.spans;
      }
    }
  }
  result.by_kind = ranked(std::move(kinds), area);
  result.by_name = ranked(std::move(names), area);
  return result;
}

void AreaTotalsModel::set_totals(std::vector<AreaTotal> totals) {
  beginResetModel();
  totals_ = std::move(totals);
  endResetModel();
}

int AreaTotalsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(totals_.size());
}

int AreaTotalsModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant AreaTotalsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= static_cast<int>(totals_.size())) return {};
  const AreaTotal& total = totals_[static_cast<std::size_t>(index.row())];
  if (role == StyleRole) return total.style;
  if (role == Qt::TextAlignmentRole)
    return int(Qt::AlignVCenter | (index.column() == kName ? Qt::AlignLeft : Qt::AlignRight));
  if (role != Qt::DisplayRole && role != Qt::UserRole) return {};
  const bool number = role == Qt::UserRole;
  switch (index.column()) {
    case kName:
      return text(total.name);
    case kCount:
      return number ? QVariant(qint64{total.count}) : QVariant(text(fmt::format("{}", total.count)));
    case kTotal:
      return number ? QVariant(qint64{total.total}) : QVariant(text(duration_text(total.total)));
    case kMean:
      return number ? QVariant(total.mean())
                    : QVariant(text(duration_text(static_cast<Time>(std::llround(total.mean())))));
    case kLeast:
      return number ? QVariant(qint64{total.least}) : QVariant(text(duration_text(total.least)));
    case kMost:
      return number ? QVariant(qint64{total.most}) : QVariant(text(duration_text(total.most)));
    case kShare:
      return number ? QVariant(total.share) : QVariant(text(fmt::format("{:.1f} %", 100 * total.share)));
    default:
      return {};
  }
}

QVariant AreaTotalsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static const std::array<const char*, kColumns> kNames = {"Name",     "Count",   "Total", "Mean",
                                                           "Shortest", "Longest", "Share"};
  static const std::array<const char*, kColumns> kTips = {"Kind or name of the spans",
                                                          "Spans that are at least partly in the area",
                                                          "Time of the spans inside the area",
                                                          "Total / count",
                                                          "Shortest duration inside the area",
                                                          "Longest duration inside the area",
                                                          "Share of the area (its time x its rows)"};
  if (orientation != Qt::Horizontal || section < 0 || section >= kColumns) return {};
  if (role == Qt::DisplayRole) return QString::fromLatin1(kNames[static_cast<std::size_t>(section)]);
  if (role == Qt::ToolTipRole) return QString::fromLatin1(kTips[static_cast<std::size_t>(section)]);
  if (role == Qt::TextAlignmentRole)
    return int(Qt::AlignVCenter | (section == kName ? Qt::AlignLeft : Qt::AlignRight));
  return {};
}

}  // namespace rehearse::gui
