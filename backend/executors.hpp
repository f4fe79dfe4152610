// The executors that this build has, and how commands read what they carry out.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "backend/runtime/real_run.hpp"

namespace rehearse {

Executor host_executor();

// From a file, or from `in` if the path is "-". InputError.
Scenario read_run_scenario(const std::string& path, const std::vector<std::string>& overrides,
                           std::istream& in);

}  // namespace rehearse
