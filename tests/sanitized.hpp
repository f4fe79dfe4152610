// Says whether this is a build for the address sanitizer, in which the most expensive tests use smaller
// cases.
#pragma once

#include "simulator/engine/sanitized_stacks.hpp"

namespace rehearse::testing {

using sg::kSanitized;

}  // namespace rehearse::testing
