// What the stand-in for NCCL tells its profiler plugin, which is the program itself where it is one.
#pragma once

#include <cstddef>

namespace stand_in {

// A communicator begins: the plugin's context of it goes to `context`.
void start_profiler(void** context);

struct Chosen {
  const char* function = nullptr;
  std::size_t count = 0;
  const char* type = nullptr;
  int channels = 0;
  const char* algorithm = nullptr;
  const char* protocol = nullptr;
};
// A collective begins and ends.
void tell_profiler(void* context, const Chosen& chosen);

}  // namespace stand_in
