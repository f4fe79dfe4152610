// Declares the checks of device memory, which is poisoned when allocated and freed, guarded at both ends, and
// whose freed addresses are not reused for a long time.
#pragma once

#include <cstddef>

namespace stand_in {

// Reports a violation unless all these bytes are in one live allocation. An empty range always passes.
void expect_range(const void* first, std::size_t bytes, const char* call);

}  // namespace stand_in
