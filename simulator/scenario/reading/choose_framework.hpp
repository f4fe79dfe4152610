// Chooses the framework preset of a scenario that names none: presets state in [fits] which jobs they are of.
#pragma once

#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/text/toml_value.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// What a job tells about the framework that may run it.
struct FrameworkQuestion {
  const Model& model;
  const Device& device;
  Precision precision = Precision::bf16;
};

// Returns the framework presets whose [fits] table covers the job, the newest first. `strategy`: only those
// that run this strategy preset; empty: any.
std::vector<std::string> fitting_frameworks(const FrameworkQuestion& question, const std::string& strategy);

// Returns the framework preset of the scenario `root`: the newest of those that fit and run the strategy
// preset that it names. Returns an empty string if there is none, if the scenario has training.framework or
// [framework], or if its messages are not those of NCCL. Files are relative to `base_folder`. An invalid
// scenario gets none: its reader reports the error.
std::string default_framework(const TomlValue& root, const std::string& base_folder);

}  // namespace rehearse
