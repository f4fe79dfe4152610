// Device memory: poisoned when it is given, guarded at its ends and never given twice.
#pragma once

#include <cstddef>

namespace stand_in {

// A violation unless all these bytes lie in one allocation that is still there. An empty range always does.
void expect_range(const void* first, std::size_t bytes, const char* call);

}  // namespace stand_in
