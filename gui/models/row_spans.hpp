// Which span of a timeline shows a row of our own trace, and the other way round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "gui/models/timeline.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse::gui {

inline constexpr std::size_t kNoTraceRow = static_cast<std::size_t>(-1);

// Both were read from one file. A row is found by its class (process), op, step and, where an op is repeated,
// its time.
class RowSpans {
public:
  RowSpans(const Trace& trace, const Timeline& timeline);

  SpanId span_of(std::size_t row) const;  // kNoSpan: the timeline does not show it
  // Of a transfer's wait also, and then the transfer's row; kNoTraceRow: none.
  std::size_t row_of(SpanId span) const;
  // A time of the trace on the timeline, and back.
  Time time_of(double seconds) const;
  double seconds_of(Time time) const;

private:
  Time origin_ = 0;
  std::vector<SpanId> spans_;        // by row
  std::vector<std::uint32_t> rows_;  // by span
};

}  // namespace rehearse::gui
