// Programs with the stand-in for CUDA, cuBLAS and NCCL in place of the real libraries.
#pragma once

#include <string>

#include "tests/backend_run.hpp"

namespace rehearse::test {

// `environment`: the stand-in's settings (tests/stand_in/settings.hpp).
inline Outcome run_on_stand_in(const std::string& program, const std::string& arguments,
                               const std::string& environment = "") {
  return run_program(program, arguments, environment + " LD_PRELOAD=" REHEARSE_STAND_IN);
}

}  // namespace rehearse::test
