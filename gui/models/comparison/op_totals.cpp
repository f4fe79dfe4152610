#include "gui/models/comparison/op_totals.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <numeric>

namespace rehearse::gui {
namespace {

using Roles = std::uint64_t;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool is_counted(Kind kind) {
  return kind != Kind::waiting && kind != Kind::bubble && kind != Kind::annotation;
}

// Totals by name and kind. Most names have one kind only; further kinds are chained behind the first.
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
      next_.push_back(kNone);  // can reallocate and invalidate `at`
      names_.push_back(name);
      return totals_[slot];
    }
    return totals_[*at];
  }
  // `roles`: one bit for each role that does such work.
  OpTotals& of(std::uint32_t name, Kind kind, Roles roles) {
    OpTotals& its = of(name, kind);
    const auto slot = static_cast<std::size_t>(&its - totals_.data());
    roles_.resize(totals_.size(), 0);
    roles_[slot] |= roles;
    return its;
  }
  const std::vector<OpTotals>& totals() const { return totals_; }
  Roles roles(std::size_t slot) const { return roles_[slot]; }
  std::uint32_t name(std::size_t slot) const { return names_[slot]; }

private:
  std::vector<std::uint32_t> first_, next_, names_;
  std::vector<OpTotals> totals_;
  std::vector<Roles> roles_;
};

// Counts the ranks of each role that have spans. The roles that exceed the bits of `Roles` share the last
// bit.
class RanksOfRoles {
public:
  explicit RanksOfRoles(const Timeline& timeline) {
    // In a profile, processes without a device have no summary.
    const bool summarized = std::any_of(timeline.processes.begin(), timeline.processes.end(),
                                        [](const Process& process) { return process.summary_row >= 0; });
    for (const Process& process : timeline.processes) {
      const auto known = std::find(names_.begin(), names_.end(), process.role);
      const auto place = std::min(static_cast<std::size_t>(known - names_.begin()), ranks_.size() - 1);
      if (known == names_.end() && names_.size() < ranks_.size()) names_.push_back(process.role);
      role_of_.push_back(Roles{1} << place);
      if ((summarized && process.summary_row < 0) || !process.device) continue;
      bool any = false;
      for (int track = process.first_track; track < process.last_track; ++track) {
        const Track& its = timeline.tracks[static_cast<std::size_t>(track)];
        any = any || its.last_row > its.first_row;
      }
      if (any) ranks_[place] += std::max(1, process.members);
    }
  }
  Roles of(int process) const { return role_of_[static_cast<std::size_t>(process)]; }
  double all() const { return std::accumulate(ranks_.begin(), ranks_.end(), 0.0); }
  // Ranks of the given roles. Falls back to all ranks if the roles have none, as for host processes next to
  // their devices.
  double ranks(Roles roles) const {
    double sum = 0;
    for (std::size_t place = 0; place < ranks_.size(); ++place)
      if ((roles >> place & 1) != 0) sum += ranks_[place];
    return sum > 0 ? sum : std::max(1.0, all());
  }

private:
  std::vector<std::string> names_;
  std::vector<Roles> role_of_;  // by process
  std::array<double, 64> ranks_{};
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
  // In Rehearse's traces, these name a bucket's share of a pass.
  for (const std::string_view part : {", layers ", ", layer "}) name = name.substr(0, name.find(part));
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
  const RanksOfRoles ranks(timeline);
  result.ranks = ranks.all();
  for (const Row& row : timeline.rows) {
    if (row.track < 0) continue;
    if (cancelled != nullptr && *cancelled) return result;
    const double members = std::max(1, timeline.processes[static_cast<std::size_t>(row.process)].members);
    const Roles role = ranks.of(row.process);
    for (SpanId span = timeline.first_after(row, range.begin);
         span < row.last && spans.begin[span] < range.end; ++span) {
      if (!is_counted(spans.kind[span])) continue;
      const Time length = spans.end[span] - spans.begin[span];
      const Time inside = std::min(spans.end[span], range.end) - std::max(spans.begin[span], range.begin);
      const double whole_s = static_cast<double>(length) * 1e-9;
      OpTotals& its = found.of(spans.name[span], spans.kind[span], role);
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
  std::map<std::pair<std::string, Kind>, Roles> roles_of;
  for (std::size_t slot = 0; slot < found.totals().size(); ++slot) {
    const OpTotals& its = found.totals()[slot];
    const std::pair key(kind_of_name(timeline.strings[found.name(slot)]), its.kind);
    add(by_kind[key], its);
    roles_of[key] |= found.roles(slot);
  }
  for (auto& [key, totals] : by_kind) {
    totals.name = key.first;
    totals.kind = key.second;
    totals.ranks = ranks.ranks(roles_of[key]);
    result.ops.push_back(std::move(totals));
  }
  std::stable_sort(result.ops.begin(), result.ops.end(),
                   [](const OpTotals& a, const OpTotals& b) { return a.seconds > b.seconds; });
  return result;
}

TableData rows_of(const OpTotalsOfRange& totals) {
  double longest_s = 0, longest_one_s = 0, most_bytes = 0, fastest = 0;
  const auto bandwidth = [](const OpTotals& op) { return op.bytes_s > 0 ? op.bytes / op.bytes_s : 0; };
  for (const OpTotals& op : totals.ops) {
    longest_s = std::max(longest_s, op.mean(op.seconds));
    longest_one_s = std::max(longest_one_s, static_cast<double>(op.longest) * 1e-9);
    most_bytes = std::max(most_bytes, op.mean(op.bytes));
    fastest = std::max(fastest, bandwidth(op));
  }
  const Unit total = unit_of_seconds(longest_s), one = unit_of_seconds(longest_one_s),
             size = unit_of_bytes(most_bytes), rate = unit_of_bytes_per_s(fastest);
  const QString kMean = "averaged over the ranks whose role does such work (workers or servers)";
  TableData data;
  data.columns = {
      {"op", "Ops whose names differ only in their numbers", false},
      {"kind", {}, false},
      {"count", "Number of ops, " + kMean},
      {"total (" + total.name + ")", "Time in the chosen period, " + kMean},
      {"share (%)", "Share of the chosen period; shares can exceed 100 % together, as streams run at once"},
      {"mean (" + one.name + ")", "Mean duration, including parts outside the period"},
      {"min (" + one.name + ")", "Shortest duration"},
      {"max (" + one.name + ")", "Longest duration"},
      {"data (" + size.name + ")", "Bytes moved (for a collective, its buffer), " + kMean},
      {"bandwidth (" + rate.name + ")", "Bytes divided by the time they took"},
      {"TFLOP/s", "Operations divided by the time they took"}};
  for (const OpTotals& op : totals.ops) {
    const auto kind = kKindNames[static_cast<std::size_t>(op.kind)];
    const auto known = [](bool is, double value) { return is ? number_cell(value) : Cell{}; };
    const auto time = [&](Time ns) { return number_cell(static_cast<double>(ns) * 1e-9 * one.factor); };
    const double total_s = op.mean(op.seconds);
    Cell name = text_cell(QString::fromStdString(op.name));
    name.kind = op.kind;
    data.rows.push_back({name, text_cell(QString::fromUtf8(kind.data(), static_cast<int>(kind.size()))),
                         count_cell(op.mean(op.count)), number_cell(total_s * total.factor),
                         number_cell(totals.seconds > 0 ? 100 * total_s / totals.seconds : 0, 3),
                         number_cell(op.whole_s / op.count * one.factor), time(op.shortest), time(op.longest),
                         known(op.bytes > 0, op.mean(op.bytes) * size.factor),
                         known(op.bytes_s > 0, bandwidth(op) * rate.factor),
                         known(op.flops_s > 0, op.flops_s > 0 ? op.flops / op.flops_s / 1e12 : 0)});
  }
  // Leaves out columns that are empty in every row.
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
