#include "gui/models/timeline/arrow_times.hpp"

#include <algorithm>

namespace rehearse::gui {

ArrowTimes arrow_times(const Timeline& timeline, SpanId from, SpanId to) {
  const SpanColumns& spans = timeline.spans;
  if (spans.kind[from] == Kind::communication && spans.kind[to] == Kind::communication)
    // The clocks of two machines may differ by more than the message takes.
    return {spans.begin[from], std::max(spans.begin[from], spans.end[to])};
  const Time arrives = std::max(spans.begin[from], spans.begin[to]);
  return {std::min(spans.end[from], arrives), arrives};
}

}  // namespace rehearse::gui
