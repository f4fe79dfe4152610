// Computes when the message or dependency of an arrow leaves one span and arrives in the other.
#pragma once

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

struct ArrowTimes {
  Time leaves = 0, arrives = 0;  // leaves <= arrives
};

// Bytes leave where the sender's transfer begins and are there where the receiver's ends: both wait for each
// other in earlier spans and then proceed together. A span that was launched by or depends on another
// begins after it, or while it is running.
ArrowTimes arrow_times(const Timeline& timeline, SpanId from, SpanId to);

}  // namespace rehearse::gui
