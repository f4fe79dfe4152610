// Binds ranks to separate processor cores: [run] bind = "core".
#pragma once

#include <string>
#include <vector>

#include "backend/runtime/transport.hpp"

namespace rehearse {

// Processors by core, as Linux numbers them: hardware threads that share a core form one entry.
using Cores = std::vector<std::vector<int>>;

// Groups the processors of `allowed` by core; a processor whose core the system does not report counts as a
// core.
Cores cores_of(const std::vector<int>& allowed);

// Returns the index of the core that `rank` takes. `mine` has one text per rank, which names the machine and
// the cores that the rank may use; ranks with equal texts share these cores and take them in order of rank.
// `cores` is the number of these cores. Throws RunError if more ranks share them than there are cores.
int core_of_rank(const std::vector<std::string>& mine, int rank, int cores);

// Parses a list of processors in Linux's format, "0-3,8,10-11"; returns an empty list if it is malformed.
std::vector<int> processors_of_list(const std::string& list);

// Binds this process to those of its allowed processors that are on the NUMA node of a PCI device
// ("0000:1b:00.0"), so that its calls do not cross sockets. Returns their number, or 0 if nothing was bound:
// either all allowed processors are already on that node, or the system does not report it.
int bind_near(const std::string& pci_device);

// Binds all threads of this process, and the threads that they start later, to one of the cores that the
// process may use. All ranks must call it. Throws RunError if two ranks would have to share a core, or if the
// system does not support binding.
void bind_to_core(Transport& transport);

}  // namespace rehearse
