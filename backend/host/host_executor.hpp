// The executor of processors and sockets, as runs choose it.
#pragma once

#include "backend/runs/real_run.hpp"

namespace rehearse {

// `collectives`: whose all-reduces they are; RunError as the run begins if the transport has none.
Executor host_executor(RealRun::Collectives collectives = RealRun::Collectives::schedule);

}  // namespace rehearse
