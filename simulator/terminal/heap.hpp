// Uses huge pages for the heap of programs that fill much memory in a short time.
#pragma once

namespace rehearse {

// Reserves address space for the heap and requests huge pages there, which avoids most page faults: this
// saves a quarter of the time of a prediction with 100,000 ops. Memory is still allocated only as it is used.
// Does nothing if the allocator or the system does not support it.
void use_huge_pages_for_heap();

}  // namespace rehearse
