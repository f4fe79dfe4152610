#include "gui/models/op_totals.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

namespace rehearse::gui {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool is_counted(Kind kind) {
  return kind != Kind::waiting && kind != Kind::bubble && kind != Kind::annotation;
}

// By name and kind: most names have one kind only, further ones hang behind it.
class Slots {
public:
  explicit Slots(std::size_t names) : first_(names, kNone) {}

  OpTotals& of(std::uint32_t name, Kind kind) {
    std::uint32_t* at = &first_[name];
    while (*at != kNone && totals_[*at].kind != kind) at = &next_[*at];
    if (*at == kNone) {
      *at = static_cast<std::uint32_t>(totals_.size());
      totals_.push_back({});
      totals_.back().kind = kind;
      const std::uint32_t slot = *at;
      next_.push_back(kNone);  // may move what `at` points to
      names_.push_back(name);
      return totals_[slot];
    }
    return totals_[*at];
  }
  const std::vector<OpTotals>& totals() const { return totals_; }
  std::uint32_t name(std::size_t slot) const { return names_[slot]; }

private:
  std::vector<std::uint32_t> first_, next_, names_;
  std::vector<OpTotals> totals_;
};

void add(OpTotals& to, const OpTotals& from) {
  to.count += from.count;
  to.seconds += from.seconds;
  to.whole_s += from.whole_s;
  to.shortest = std::min(to.shortest, from.shortest);
  to.longest = std::max(to.longest, from.longest);
  to.bytes += from.bytes;
  to.bytes_s += from.bytes_s;
  to.flops += from.flops;
  to.flops_s += from.flops_s;
}

bool is_number(std::string_view word) {
  bool digit = false;
  for (const char c : word) {
    digit = digit || std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("-.,:#x/").find(c) == std::string_view::npos)
      return false;
  }
  return digit;
}

}  // namespace

std::string kind_of_name(std::string_view name) {
  for (const std::string_view part : {", layers ", ", layer "})  // of ours: a bucket's share of a pass
    name = name.substr(0, name.find(part));
  std::string kind;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find(' '), name.size());
    std::string_view word = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (word.empty() || is_number(word)) continue;
    const std::size_t hash = word.rfind('#');  // "ProfilerStep#7"
    if (hash != std::string_view::npos && hash > 0 && is_number(word.substr(hash)))
      word = word.substr(0, hash);
    kind += (kind.empty() ? "" : " ") + std::string(word);
  }
  return kind.empty() ? std::string("(a number)") : kind;
}

OpTotalsOfRange op_totals(const Timeline& timeline, TimeRange range, const std::atomic<bool>* cancelled) {
  OpTotalsOfRange result;
  result.seconds = static_cast<double>(std::max<Time>(0, range.length())) * 1e-9;
  const SpanColumns& spans = timeline.spans;
  Slots found(timeline.strings.size());
  // Of a profile, processes that stand for no device have no summary.
  const bool summarized = std::any_of(timeline.processes.begin(), timeline.processes.end(),
                                      [](const Process& process) { return process.summary_row >= 0; });
  for (const Process& process : timeline.processes) {
    if ((summarized && process.summary_row < 0) || !process.device) continue;
    bool any = false;
    for (int track = process.first_track; track < process.last_track; ++track) {
      const Track& its = timeline.tracks[static_cast<std::size_t>(track)];
      any = any || its.last_row > its.first_row;
    }
    if (any) result.ranks += std::max(1, process.members);
  }
  for (const Row& row : timeline.rows) {
    if (row.track < 0) continue;
    if (cancelled != nullptr && *cancelled) return result;
    const double members = std::max(1, timeline.processes[static_cast<std::size_t>(row.process)].members);
    for (SpanId span = timeline.first_after(row, range.begin);
         span < row.last && spans.begin[span] < range.end; ++span) {
      if (!is_counted(spans.kind[span])) continue;
      const Time length = spans.end[span] - spans.begin[span];
      const Time inside = std::min(spans.end[span], range.end) - std::max(spans.begin[span], range.begin);
      const double whole_s = static_cast<double>(length) * 1e-9;
      OpTotals& its = found.of(spans.name[span], spans.kind[span]);
      its.count += members;
      its.seconds += members * static_cast<double>(inside) * 1e-9;
      its.whole_s += members * whole_s;
      its.shortest = std::min(its.shortest, length);
      its.longest = std::max(its.longest, length);
      if (const auto bytes = static_cast<double>(spans.bytes[span]); bytes > 0) {
        its.bytes += members * bytes;
        its.bytes_s += members * whole_s;
      }
      if (const auto flops = static_cast<double>(spans.flops[span]); flops > 0) {
        its.flops += members * flops;
        its.flops_s += members * whole_s;
      }
    }
  }
  std::map<std::pair<std::string, Kind>, OpTotals> by_kind;
  for (std::size_t slot = 0; slot < found.totals().size(); ++slot) {
    const OpTotals& its = found.totals()[slot];
    add(by_kind[{kind_of_name(timeline.strings[found.name(slot)]), its.kind}], its);
  }
  for (auto& [key, totals] : by_kind) {
    totals.name = key.first;
    totals.kind = key.second;
    result.ops.push_back(std::move(totals));
  }
  std::stable_sort(result.ops.begin(), result.ops.end(),
                   [](const OpTotals& a, const OpTotals& b) { return a.seconds > b.seconds; });
  return result;
}

TableData rows_of(const OpTotalsOfRange& totals) {
  const double ranks = std::max(1.0, totals.ranks);
  double longest_s = 0, longest_one_s = 0, most_bytes = 0, fastest = 0;
  const auto bandwidth = [](const OpTotals& op) { return op.bytes_s > 0 ? op.bytes / op.bytes_s : 0; };
  for (const OpTotals& op : totals.ops) {
    longest_s = std::max(longest_s, op.seconds / ranks);
    longest_one_s = std::max(longest_one_s, static_cast<double>(op.longest) * 1e-9);
    most_bytes = std::max(most_bytes, op.bytes / ranks);
    fastest = std::max(fastest, bandwidth(op));
  }
  const Unit total = unit_of_seconds(longest_s), one = unit_of_seconds(longest_one_s),
             size = unit_of_bytes(most_bytes), rate = unit_of_bytes_per_s(fastest);
  TableData data;
  data.columns = {
      {"op", "Ops with the same name but for their numbers", false},
      {"kind", {}, false},
      {"count", "How many, of a mean rank"},
      {"total (" + total.name + ")", "Time of a mean rank, as far as it lies in the chosen stretch"},
      {"share (%)", "Total over the chosen stretch; streams run side by side"},
      {"mean (" + one.name + ")", "Mean of the whole durations"},
      {"min (" + one.name + ")", "The shortest"},
      {"max (" + one.name + ")", "The longest"},
      {"data (" + size.name + ")", "Bytes that a mean rank moves; of a collective its buffer"},
      {"bandwidth (" + rate.name + ")", "Bytes over the time that they took"},
      {"TFLOP/s", "Operations over the time that they took"}};
  for (const OpTotals& op : totals.ops) {
    const auto kind = kKindNames[static_cast<std::size_t>(op.kind)];
    const auto known = [](bool is, double value) { return is ? number_cell(value) : Cell{}; };
    const auto time = [&](Time ns) { return number_cell(static_cast<double>(ns) * 1e-9 * one.factor); };
    const double total_s = op.seconds / ranks;
    Cell name = text_cell(QString::fromStdString(op.name));
    name.kind = op.kind;
    data.rows.push_back({name, text_cell(QString::fromUtf8(kind.data(), static_cast<int>(kind.size()))),
                         count_cell(op.count / ranks), number_cell(total_s * total.factor),
                         number_cell(totals.seconds > 0 ? 100 * total_s / totals.seconds : 0, 3),
                         number_cell(op.whole_s / op.count * one.factor), time(op.shortest), time(op.longest),
                         known(op.bytes > 0, op.bytes / ranks * size.factor),
                         known(op.bytes_s > 0, bandwidth(op) * rate.factor),
                         known(op.flops_s > 0, op.flops_s > 0 ? op.flops / op.flops_s / 1e12 : 0)});
  }
  // What no op tells is left out.
  for (std::size_t column = data.columns.size(); column-- > 0;) {
    const bool told = std::any_of(data.rows.begin(), data.rows.end(),
                                  [&](const auto& row) { return !row[column].text.isEmpty(); });
    if (told || data.rows.empty()) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    data.columns.erase(data.columns.begin() + at);
    for (auto& row : data.rows) row.erase(row.begin() + at);
  }
  return data;
}

}  // namespace rehearse::gui
