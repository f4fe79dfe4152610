// The executor of processors and sockets, as runs choose it.
#pragma once

#include "backend/runtime/real_run.hpp"

namespace rehearse {

Executor host_executor();

}  // namespace rehearse
