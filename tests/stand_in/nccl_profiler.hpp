// Reports the stand-in's collectives to NCCL's profiler plugin, if the running program itself exports one.
#pragma once

#include <cstddef>

namespace stand_in {

// Initializes the plugin for a new communicator; stores the plugin's handle for it in `context`.
void start_profiler(void** context);

struct Chosen {
  const char* function = nullptr;
  std::size_t count = 0;
  const char* type = nullptr;
  int channels = 0;
  const char* algorithm = nullptr;
  const char* protocol = nullptr;
};
// Reports the start and the end of a collective.
void tell_profiler(void* context, const Chosen& chosen);

}  // namespace stand_in
