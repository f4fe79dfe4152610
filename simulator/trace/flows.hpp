// Finds the arrows of the timeline: which row received another row's message.
#pragma once

#include <vector>

#include "simulator/trace/trace.hpp"

namespace rehearse {

struct Flow {
  std::size_t from = 0, to = 0;  // rows of the trace
};

// Returns the messages between classes, matched in order as the schedule matches them: among those with the
// same two ends and the same tag. Ordered by the sender's row.
std::vector<Flow> message_flows(const Trace& trace);

}  // namespace rehearse
