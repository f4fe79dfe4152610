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

// Writes beside the file first and then renames, so that nothing else sees half of it. RunError if the disk
// is full or the folder is not there.
void write_whole_file(const std::string& path, const std::string& text);

}  // namespace rehearse
