// What the name of a process of ours tells: "stage 3, data 0-63 (64 ranks)".
#pragma once

#include <string>

namespace rehearse::gui {

int members_of(const std::string& name);        // ranks it stands for; 1 if it does not tell
std::string stage_of(const std::string& name);  // "stage 3"; empty if there is none
std::string role_of(const std::string& name);   // "worker", "server"

}  // namespace rehearse::gui
