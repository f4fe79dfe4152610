// What a row of the timeline is called.
#pragma once

#include <string>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// "stage 3, data 0-63 (64 ranks)", "stage 3, data 5 (rank 83)"; with several jobs the job's name stands
// before it.
std::string class_name(const Trace& trace, int rank_class);

}  // namespace rehearse
