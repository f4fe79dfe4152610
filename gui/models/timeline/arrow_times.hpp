// Computes when the message or dependency of an arrow leaves one span and arrives in the other.
#pragma once

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

struct ArrowTimes {
  Time leaves = 0, arrives = 0;  // leaves <= arrives
};

// A message leaves when the sender's transfer begins and arrives when the receiver's ends: both wait for each
// other in earlier spans and then proceed together. A dependent or launched span begins after the span it
// depends on, or while that is still running.
ArrowTimes arrow_times(const Timeline& timeline, SpanId from, SpanId to);

}  // namespace rehearse::gui
