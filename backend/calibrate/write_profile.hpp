// Device and link profiles as text that `rehearse` reads.
#pragma once

#include <string>

#include "simulator/costs/link_profile.hpp"
#include "topologies/device.hpp"

namespace rehearse {

// What read_device() reads back as the same device, to 6 digits. `heading`: lines of comment, without "#".
std::string device_profile_text(const Device& device, const std::string& heading);
// What read_link_profile() reads back as the same profile, to 6 digits.
std::string link_profile_text(const LinkProfile& profile, const std::string& heading);

}  // namespace rehearse
