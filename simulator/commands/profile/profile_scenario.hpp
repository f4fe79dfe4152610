// Turns a profiled step into a scenario.
#pragma once

#include <string>
#include <vector>

#include "simulator/profiler/step_profile.hpp"

namespace rehearse {

struct ProfileScenario {
  std::string cluster;     // name of a preset, or a file; empty: one that fits the trace's device
  double micro_batch = 0;  // samples, if the trace does not state them or is wrong; 0: as the trace states
};

// Returns the text of a scenario that trains the profiled layers on one device. Throws InputError if there is
// no such cluster, or none that fits the trace's GPU.
std::string profile_scenario(const StepProfile& profile, const ProfileScenario& choices);

// Returns what the trace is of: "processors", a GPU's name, or an accelerator whose kind is not known.
std::string device_of(const StepProfile& profile);

// Returns what such a scenario leaves out or assumes, in complete sentences.
std::vector<std::string> profile_notes(const StepProfile& profile, const ProfileScenario& choices);

}  // namespace rehearse
