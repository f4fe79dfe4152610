// Provides the executor for processors and sockets.
#pragma once

#include "backend/runs/real_run.hpp"

namespace rehearse {

// `collectives` selects the implementation of all-reduces. The run throws RunError when it starts if that is
// the library's and the transport has none.
Executor host_executor(RealRun::Collectives collectives = RealRun::Collectives::schedule);

}  // namespace rehearse
