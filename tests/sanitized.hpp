// Says whether this is a build for the address or the thread sanitizer, in which the most expensive tests use
// smaller cases.
#pragma once

#include "simulator/engine/sanitized_stacks.hpp"

namespace rehearse::testing {

#ifdef __SANITIZE_THREAD__  // of GCC, with which the preset "thread" compiles
inline constexpr bool kSanitized = true;
#else
using sg::kSanitized;
#endif

}  // namespace rehearse::testing
