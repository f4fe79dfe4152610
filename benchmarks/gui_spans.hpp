// Spans made for a benchmark, of which little is told.
#pragma once

#include <cmath>

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

// Fills the columns of what nobody asks for: one step, no op, no algorithm, nothing sent or computed.
inline void leave_the_rest_untold(SpanColumns& spans) {
  const std::size_t count = spans.begin.size();
  spans.step.assign(count, 0);
  spans.op.assign(count, -1);
  spans.algorithm.assign(count, 0);
  spans.members.assign(count, 0);
  spans.bytes.assign(count, NAN);
  spans.flops.assign(count, NAN);
  spans.ready.assign(count, -1);
}

}  // namespace rehearse::gui
