// Maps rows of a Rehearse trace to the timeline spans that show them, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "gui/models/timeline/timeline.hpp"
#include "simulator/trace/trace.hpp"

namespace rehearse::gui {

inline constexpr std::size_t kNoTraceRow = static_cast<std::size_t>(-1);

// The trace and the timeline must come from the same file. A row is identified by its rank class (process),
// op and step, and by its time if the op repeats.
class RowSpans {
public:
  RowSpans(const Trace& trace, const Timeline& timeline);

  SpanId span_of(std::size_t row) const;  // kNoSpan: the timeline does not show it
  // Also accepts the wait before a transfer, for which it returns the transfer's row; kNoTraceRow: none.
  std::size_t row_of(SpanId span) const;
  // Converts a time of the trace to the timeline's, and back.
  Time time_of(double seconds) const;
  double seconds_of(Time time) const;

private:
  Time origin_ = 0;
  std::vector<SpanId> spans_;        // by row
  std::vector<std::uint32_t> rows_;  // by span
};

}  // namespace rehearse::gui
