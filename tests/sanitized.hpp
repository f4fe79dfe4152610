// Whether this is a build for the address sanitizer, in which the dearest tests take smaller cases.
#pragma once

#include "simulator/engine/sanitized_stacks.hpp"

namespace rehearse::testing {

using sg::kSanitized;

}  // namespace rehearse::testing
