// Which GPU a rank has, what lies in its memory, and the versions of the software between it and us.
#pragma once

#include <map>
#include <string>

namespace rehearse {

// "CUDA driver" (the newest CUDA that it can run), "CUDA runtime", "cuBLAS", "NCCL": of the libraries that
// run. RunError if one of them does not tell.
std::map<std::string, std::string> gpu_versions();

// Of GPU number `device` of those that are visible; RunError if there is none.
std::string gpu_uuid(int device);      // "GPU-8d3b1ea4-...", as nvidia-smi prints it
std::string pci_bus_id(int device);    // "0000:1b:00.0"
double used_device_bytes(int device);  // by all processes, with CUDA's own

}  // namespace rehearse
