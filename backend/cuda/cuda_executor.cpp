#include "backend/cuda/cuda_executor.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "backend/cuda/check.hpp"
#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/cuda_hardware.hpp"
#include "backend/cuda/nccl_communicator.hpp"
#include "backend/runtime/placement.hpp"

namespace rehearse {
namespace {

void set_unless_given(const char* name, const char* value) {
  setenv(name, value, 0);
}

// Before CUDA starts. A stream that waits must not hold up another one behind it in the same hardware queue,
// of which there are 8 unless more are asked for (CUDA Programming Guide, "Environment Variables").
void prepare_cuda() {
  set_unless_given("CUDA_DEVICE_MAX_CONNECTIONS", "32");
}

// Before NCCL starts. With all connections made at the beginning, none is made beside running kernels.
void prepare_nccl() {
  set_unless_given("NCCL_RUNTIME_CONNECT", "0");
}

// NCCL takes processes of different host ids for different machines, and does not mind then that they have
// the same GPU; between them only sockets remain. It reads these once, when it starts.
void prepare_sharing(const std::string& machine, int rank, bool one_machine) {
  setenv("NCCL_HOSTID", fmt::format("{} rank {}", machine, rank).c_str(), 1);
  setenv("NCCL_P2P_DISABLE", "1", 1);
  setenv("NCCL_SHM_DISABLE", "1", 1);
  setenv("NCCL_NET", "Socket", 1);
  if (one_machine) setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

struct Seen {
  int device = -1;
  std::string id;     // of the GPU, anywhere
  std::string error;  // why there is none
};

// No error of CUDA's is thrown here: the other ranks are to hear of it.
Seen look(int local) {
  Seen seen;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) {
    seen.device = local % count;
    cudaDeviceProp properties;
    status = cudaGetDeviceProperties(&properties, seen.device);
    if (status == cudaSuccess) seen.id.assign(properties.uuid.bytes, sizeof properties.uuid.bytes);
  }
  if (status != cudaSuccess) seen.error = cudaGetErrorString(status);
  return seen;
}

}  // namespace

CudaChoice cuda_executor(const CudaOptions& options, Transport& transport) {
  prepare_cuda();
  const Seen own = look(local_rank(transport));
  const std::vector<std::string> errors = all_gather(transport, own.error);
  const std::vector<std::string> gpus = all_gather(transport, own.id);
  const std::vector<std::string> machines = all_gather(transport, machine_name());
  CudaChoice choice;
  for (std::size_t r = 0; r < errors.size(); ++r)
    if (!errors[r].empty()) {
      choice.refused = fmt::format("rank {} finds no GPU: {}", r, errors[r]);
      return choice;
    }
  const int sharing = most_alike(gpus);
  if (sharing > 1 && !options.oversubscribe) {
    choice.refused = fmt::format(
        "{} ranks would share a GPU; allowed: a GPU for each rank, or --oversubscribe, "
        "with which they take turns on it",
        sharing);
    return choice;
  }
  prepare_nccl();
  Executor& executor = choice.executor;
  if (sharing > 1) {
    const bool one_machine = std::all_of(machines.begin(), machines.end(),
                                         [&](const std::string& m) { return m == machines.front(); });
    prepare_sharing(machines[static_cast<std::size_t>(transport.rank())], transport.rank(), one_machine);
    executor.notes.push_back(fmt::format(
        "{} ranks share a GPU: they take turns on it and NCCL goes through sockets, so that this run "
        "shows arithmetic and order of operations, not the speed of GPUs or of NCCL",
        sharing));
  }
  const char* algorithms = std::getenv("NCCL_ALGO");
  executor.notes.push_back(fmt::format("NCCL {} chooses the algorithm of each collective{}", nccl_version(),
                                       algorithms != nullptr
                                           ? fmt::format(" from NCCL_ALGO={}", algorithms)
                                           : "; NCCL_ALGO=Ring or Tree in the environment forces one"));
  executor.name = "cuda";
  executor.on_processors = false;
  executor.rehearse = true;
  const int device = own.device;
  executor.arithmetic = [device](int streams) { return std::make_unique<CudaArithmetic>(device, streams); };
  executor.hardware = [options](const Schedule& schedule, const Wiring& wiring, int rank, Transport& between,
                                Workload& workload, Arithmetic& arithmetic) {
    return cuda_hardware(schedule, wiring, rank, between, workload, dynamic_cast<CudaArithmetic&>(arithmetic),
                         {options.patience_s, options.timed});
  };
  return choice;
}

}  // namespace rehearse
