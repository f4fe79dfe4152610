// Names the rows of the timeline.
#pragma once

#include <string>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// Returns "stage 3, data 0-63 (64 ranks)" or "stage 3, data 5 (rank 83)", for example; preceded by the job's
// name if there are several jobs.
std::string class_name(const Trace& trace, int rank_class);

// Returns the role of a class's ranks ("worker", "server").
const Role& class_role(const Trace& trace, int rank_class);
// Returns the pipeline stage whose program they run; -1 if they are not divided into stages.
int class_stage(const Trace& trace, int rank_class);

}  // namespace rehearse
