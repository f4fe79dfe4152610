// A profiled step as a scenario.
#pragma once

#include <string>
#include <vector>

#include "simulator/profiler/step_profile.hpp"

namespace rehearse {

struct ProfileScenario {
  std::string cluster;     // a preset's name or a file; empty: one that fits the trace's device
  double micro_batch = 0;  // samples, where the trace does not tell or is wrong; 0: as the trace says
};

// The text of a scenario that trains the profiled layers on one device. InputError: no such cluster, or none
// that fits the trace's GPU.
std::string profile_scenario(const StepProfile& profile, const ProfileScenario& choices);

// What such a scenario leaves out or takes for granted: whole sentences.
std::vector<std::string> profile_notes(const StepProfile& profile, const ProfileScenario& choices);

}  // namespace rehearse
