// What a row of the timeline is called.
#pragma once

#include <string>

#include "simulator/trace/trace.hpp"

namespace rehearse {

// "stage 3, data 0-63 (64 ranks)", "stage 3, data 5 (rank 83)"; with several jobs the job's name stands
// before it.
std::string class_name(const Trace& trace, int rank_class);

// The role of a class' ranks ("worker", "server").
const Role& class_role(const Trace& trace, int rank_class);
// The pipeline stage whose program they run; -1: they are not divided into stages.
int class_stage(const Trace& trace, int rank_class);

}  // namespace rehearse
