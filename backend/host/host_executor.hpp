// Provides the executor for processors and sockets.
#pragma once

#include "backend/runs/real_run.hpp"

namespace rehearse {

// `collectives` chooses who implements all-reduces. The run throws RunError at its begin if that is the
// library and the transport has no all-reduce.
Executor host_executor(RealRun::Collectives collectives = RealRun::Collectives::schedule);

}  // namespace rehearse
