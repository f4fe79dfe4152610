// Writes device and link profiles as text that `rehearse` reads.
#pragma once

#include <string>

#include "simulator/costs/link_profile.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// Returns text that read_device() reads back as the same device, to 6 digits. `heading` has the lines of a
// comment, without "#".
std::string device_profile_text(const Device& device, const std::string& heading);
// Returns text that read_link_profile() reads back as the same profile, to 6 digits.
std::string link_profile_text(const LinkProfile& profile, const std::string& heading);

}  // namespace rehearse
