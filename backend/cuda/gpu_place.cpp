#include "backend/cuda/gpu_place.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "backend/runtime/binding.hpp"
#include "backend/runtime/placement.hpp"

namespace rehearse {
namespace {

// Sets the number of hardware queues; call it before CUDA is initialized. A waiting stream blocks other
// streams in the same hardware queue, and there are only 8 queues by default (CUDA Programming Guide,
// "Environment Variables"); Megatron-LM's scripts set 1. Returns the value that this replaces; empty if there
// was none or it was 32 already.
std::string prepare_cuda() {
  constexpr const char* kName = "CUDA_DEVICE_MAX_CONNECTIONS";
  constexpr const char* kMost = "32";
  const char* given = std::getenv(kName);
  const std::string before = given == nullptr || std::string(given) == kMost ? "" : given;
  setenv(kName, kMost, 1);
  return before;
}

// Makes NCCL connect all peers at the start, so that no connection is made beside running kernels. Must be
// called before NCCL starts.
void prepare_nccl() {
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

// Gives every process a different host id, so that NCCL assumes different machines and allows them to have
// the same GPU; only sockets work between them then. NCCL reads these variables once, when it starts.
void prepare_sharing(const std::string& machine, int rank, bool one_machine) {
  setenv("NCCL_HOSTID", fmt::format("{} rank {}", machine, rank).c_str(), 1);
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);  // from 2.30 on
  setenv("NCCL_P2P_DISABLE", "1", 1);
  setenv("NCCL_SHM_DISABLE", "1", 1);
  setenv("NCCL_NET", "Socket", 1);
  if (one_machine) setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

struct Seen {
  int device = -1;
  std::string pci;    // PCI bus address
  std::string id;     // the GPU's UUID, unique across machines
  std::string error;  // why there is no GPU
};

// Throws no CUDA errors, since the other ranks have to be notified of them first.
Seen look(int local) {
  Seen seen;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) {
    seen.device = local % count;
    cudaDeviceProp properties;
    status = cudaGetDeviceProperties(&properties, seen.device);
    std::array<char, 32> pci{};
    if (status == cudaSuccess) status = cudaDeviceGetPCIBusId(pci.data(), pci.size(), seen.device);
    seen.pci = pci.data();
    if (status == cudaSuccess) seen.id.assign(properties.uuid.bytes, sizeof properties.uuid.bytes);
  }
  if (status != cudaSuccess) seen.error = cudaGetErrorString(status);
  return seen;
}

}  // namespace

GpuPlace take_gpu(Transport& transport, bool oversubscribe) {
  const std::string connections = prepare_cuda();
  const Seen own = look(local_rank(transport));
  const std::vector<std::string> errors = all_gather(transport, own.error);
  const std::vector<std::string> gpus = all_gather(transport, own.id);
  const std::vector<std::string> machines = all_gather(transport, machine_name());
  GpuPlace place;
  place.device = own.device;
  for (std::size_t r = 0; r < errors.size(); ++r)
    if (!errors[r].empty()) {
      place.refused = fmt::format("rank {} finds no GPU: {}", r, errors[r]);
      return place;
    }
  const int sharing = most_alike(gpus);
  if (sharing > 1 && !oversubscribe) {
    place.refused = fmt::format(
        "{} ranks would share a GPU; allowed: a GPU for each rank, or --oversubscribe, "
        "with which they take turns on it",
        sharing);
    return place;
  }
  prepare_nccl();
  if (!connections.empty())
    place.notes.push_back(
        fmt::format("CUDA_DEVICE_MAX_CONNECTIONS={} in the environment is set to 32 for this run, because "
                    "streams that share a hardware queue can wait for each other forever",
                    connections));
  if (const int near = bind_near(own.pci); near > 0)  // NCCL chooses the network card near the GPU by itself
    place.notes.push_back(
        fmt::format("rank 0 is bound to the {} processors near its GPU, and the other ranks likewise", near));
  if (sharing > 1) {
    const bool one_machine = std::all_of(machines.begin(), machines.end(),
                                         [&](const std::string& m) { return m == machines.front(); });
    prepare_sharing(machines[static_cast<std::size_t>(transport.rank())], transport.rank(), one_machine);
    place.notes.push_back(
        fmt::format("{} ranks share a GPU: they take turns on it and NCCL goes through sockets, so this run "
                    "shows arithmetic and order of operations, not the speed of GPUs or of NCCL",
                    sharing));
  }
  return place;
}

}  // namespace rehearse
