// Identifies a rank's GPU, its used memory and the versions of the software that drives it.
#pragma once

#include <map>
#include <string>

namespace rehearse {

// Returns the versions of the libraries in use, by "CUDA driver" (the newest CUDA version that it supports),
// "CUDA runtime", "cuBLAS" and "NCCL". Throws RunError if one of them does not report it.
std::map<std::string, std::string> gpu_versions();

// Return properties of the visible GPU number `device`; throw RunError if it does not exist.
std::string gpu_uuid(int device);      // "GPU-8d3b1ea4-...", as nvidia-smi prints it
std::string pci_bus_id(int device);    // "0000:1b:00.0"
double used_device_bytes(int device);  // by all processes, including what CUDA itself uses

}  // namespace rehearse
