// Ranks on cores of their own: [run] bind = "core".
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Each with its processors, as Linux numbers them: hardware threads that share a core are one.
using Cores = std::vector<std::vector<int>>;

// The processors of `allowed`, by core; each a core of its own where the system does not say.
Cores cores_of(const std::vector<int>& allowed);

// Which of its cores a rank takes, given by rank what each may use: those that may use the same take theirs
// in turn. `mine`: the machine and the cores, alike for ranks that share them. RunError if they are more than
// the `cores`.
int core_of_rank(const std::vector<std::string>& mine, int rank, int cores);

// Processors of a list as Linux writes it, "0-3,8,10-11"; empty if it is none.
std::vector<int> processors_of_list(const std::string& list);

// Binds this process to those of its processors that are on the NUMA node of a PCI device ("0000:1b:00.0"),
// so that what it issues need not cross sockets. Returns how many they are; 0: all may stay, or the system
// tells nothing.
int bind_near(const std::string& pci_device);

// Binds all threads of this process, and those that they start, to one core of those that it may use; all
// ranks call it. RunError if ranks would share one, or if the system has no such thing.
void bind_to_core(Transport& transport);

}  // namespace rehearse
