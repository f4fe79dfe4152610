// Reads arbitrary bytes as a PyTorch profiler trace and profiles its steps.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <string>

#include "models/text/error.hpp"
#include "simulator/profiler/step_profile.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const int file = memfd_create("trace.json", 0);  // the reader takes a path
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  try {
    const rehearse::StepProfile profile =
        rehearse::profile_steps(rehearse::read_profiler_trace("/proc/self/fd/" + std::to_string(file)));
    if (!std::isfinite(profile.step_s) || profile.steps_used < 1) __builtin_trap();
  } catch (const rehearse::InputError&) {
  }
  close(file);
  return 0;
}
