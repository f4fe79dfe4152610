// When what an arrow stands for leaves one span and arrives in the other.
#pragma once

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

struct ArrowTimes {
  Time leaves = 0, arrives = 0;  // leaves <= arrives
};

// Bytes leave where the sender's transfer begins and are there where the receiver's ends: both wait for each
// other before, in spans of their own, and go on at the same time. What is launched or depends on another
// span begins behind it, or while it is under way.
ArrowTimes arrow_times(const Timeline& timeline, SpanId from, SpanId to);

}  // namespace rehearse::gui
