#include "gui/models/timeline/timeline.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::gui {

void SpanColumns::fill_unknown() {
  for (auto* column : {&microbatch, &step, &op}) column->resize(size(), -1);
  algorithm.resize(size(), 0);
  members.resize(size(), 0);
  for (auto* column : {&bytes, &flops}) column->resize(size(), NAN);
  ready.resize(size(), -1);
  critical.resize(size(), false);
}

int Timeline::row_of(SpanId span) const {
  const auto it =
      std::partition_point(rows.begin(), rows.end(), [&](const Row& row) { return row.last <= span; });
  return static_cast<int>(it - rows.begin());
}

SpanId Timeline::first_after(const Row& row, Time time) const {
  const auto ends = spans.end.begin();
  return static_cast<SpanId>(std::upper_bound(ends + row.first, ends + row.last, time) - ends);
}

SpanId Timeline::at(const Row& row, Time time) const {
  const SpanId span = first_after(row, time);
  return span < row.last && spans.begin[span] <= time ? span : kNoSpan;
}

std::span<const Flow> Timeline::flows_from(SpanId span) const {
  const auto first =
      std::partition_point(flows.begin(), flows.end(), [&](const Flow& f) { return f.from < span; });
  const auto last = std::partition_point(first, flows.end(), [&](const Flow& f) { return f.from == span; });
  return {first, last};
}

std::span<const std::uint32_t> Timeline::flows_into(SpanId span) const {
  const auto first = std::partition_point(flows_to.begin(), flows_to.end(),
                                          [&](std::uint32_t f) { return flows[f].to < span; });
  const auto last =
      std::partition_point(first, flows_to.end(), [&](std::uint32_t f) { return flows[f].to == span; });
  return {first, last};
}

std::string_view Timeline::detail_of(SpanId span) const {
  if (span + 1 >= first_detail.size()) return {};
  return std::string_view(details).substr(first_detail[span], first_detail[span + 1] - first_detail[span]);
}

}  // namespace rehearse::gui
