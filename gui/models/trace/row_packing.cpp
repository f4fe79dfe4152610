#include "gui/models/trace/row_packing.hpp"

#include <algorithm>
#include <numeric>

namespace rehearse::gui {
namespace {

constexpr std::size_t kMostRows = 32;  // per track
constexpr Time kRounding = 1;          // ns by which neighbors can overlap

// Finds the step of a span outside any other span from its time alone; -1: none.
std::int32_t step_at(const std::vector<Draft::Step>& steps, Time time) {
  const auto after = std::partition_point(steps.begin(), steps.end(),
                                          [&](const Draft::Step& step) { return step.begin <= time; });
  return after == steps.begin() || (after - 1)->end <= time ? -1 : (after - 1)->number;
}

}  // namespace

Order ordered(const Draft& draft) {
  Order order;
  const std::size_t count = draft.records.size();
  order.first.assign(draft.tracks.size() + 1, 0);
  for (std::size_t i = 0; i < count; ++i) ++order.first[draft.records[i].track + 1];
  std::partial_sum(order.first.begin(), order.first.end(), order.first.begin());
  reserve_large(order.records, count);
  order.records.resize(count);
  std::vector<std::size_t> next(order.first.begin(), order.first.end() - 1);
  for (std::size_t i = 0; i < count; ++i)
    order.records[next[draft.records[i].track]++] = static_cast<std::uint32_t>(i);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    const Record& first = draft.records[a];
    const Record& second = draft.records[b];
    if (first.begin != second.begin) return first.begin < second.begin;
    const bool moment = first.end == first.begin, other_moment = second.end == second.begin;
    return moment != other_moment ? moment : first.end > second.end;
  };
  in_parallel(draft.tracks.size(), threads_for(count), [&](std::size_t t) {
    const auto from = order.records.begin() + static_cast<std::ptrdiff_t>(order.first[t]);
    const auto to = order.records.begin() + static_cast<std::ptrdiff_t>(order.first[t + 1]);
    if (!std::is_sorted(from, to, earlier)) std::stable_sort(from, to, earlier);
  });
  return order;
}

PackedTrack packed(Draft& draft, std::span<const std::uint32_t> records) {
  PackedTrack track;
  std::vector<const Record*> last;  // by row
  std::vector<char> loading;        // by row: whether the last record or one that encloses it loads data
  for (const std::uint32_t number : records) {
    Record& record = draft.records[number];
    std::size_t row = 0;
    const Record* around = nullptr;
    std::size_t around_row = 0;
    for (std::size_t r = last.size(); r-- > 0;) {
      if (last[r]->end <= record.begin + kRounding || last[r]->end + kRounding < record.end) continue;
      around = last[r];
      around_row = r;
      row = r + 1;
      break;
    }
    while (row < last.size() && last[row]->end > record.begin + kRounding) ++row;
    bool loads = record.kind == Kind::data;
    if (around != nullptr && draft.profiled) {
      loads = loads || loading[around_row] != 0;
      if (loads) record.pass = Pass::none;
      if (record.pass == Pass::none) record.pass = around->pass;
      if (record.step < 0) record.step = around->step;
    }
    if (record.step < 0 && around == nullptr && !draft.steps.empty() && !draft.tracks[record.track].gpu)
      record.step = step_at(draft.steps, record.begin);
    if (row >= kMostRows) {
      ++track.too_deep;
      continue;
    }
    if (row == last.size()) {
      track.rows.emplace_back();
      last.push_back(nullptr);
      loading.push_back(0);
    }
    const Time before = last[row] == nullptr ? 0 : last[row]->end;
    if (before > record.begin) {
      record.begin = before;
      record.end = std::max(record.end, before);
    }
    PackedRow& packed_row = track.rows[row];
    if (packed_row.records.empty() && row == 0) packed_row.records.reserve(records.size());
    packed_row.records.push_back(number);
    if (waits_since(record, before) < record.begin) ++packed_row.waits;
    packed_row.dependencies += record.dependencies;
    if (draft.details_kept) packed_row.detail_bytes += record.detail_bytes;
    last[row] = &record;
    loading[row] = loads ? 1 : 0;
  }
  return track;
}

}  // namespace rehearse::gui
