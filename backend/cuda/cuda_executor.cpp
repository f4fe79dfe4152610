#include "backend/cuda/cuda_executor.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "backend/cuda/check.hpp"
#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/cuda_hardware.hpp"
#include "backend/cuda/gpu_identity.hpp"
#include "backend/cuda/gpu_sampling.hpp"
#include "backend/cuda/nccl_communicator.hpp"
#include "backend/runtime/binding.hpp"
#include "backend/runtime/placement.hpp"

namespace rehearse {
namespace {

void set_unless_given(const char* name, const char* value) {
  setenv(name, value, 0);
}

// Before CUDA starts. A stream that waits must not hold up another one behind it in the same hardware queue,
// of which there are 8 unless more are asked for (CUDA Programming Guide, "Environment Variables"). Programs
// for Megatron-LM ask for 1. Returns what was asked for, if it was something else.
std::string prepare_cuda() {
  constexpr const char* kName = "CUDA_DEVICE_MAX_CONNECTIONS";
  constexpr const char* kMost = "32";
  const char* given = std::getenv(kName);
  const std::string before = given == nullptr || std::string(given) == kMost ? "" : given;
  setenv(kName, kMost, 1);
  return before;
}

// Before NCCL starts. With all connections made at the beginning, none is made beside running kernels.
void prepare_nccl(const CudaOptions& options) {
  set_unless_given("NCCL_RUNTIME_CONNECT", "0");
  if (options.message_tables) return;
  if (options.all_reduce == Algorithm::ring) set_unless_given("NCCL_ALGO", "Ring");
  // Other collectives have no tree. Lists by function: NCCL's environment variables, NCCL_ALGO, from 2.24 on.
  if (options.all_reduce == Algorithm::tree)
    set_unless_given("NCCL_ALGO", nccl_version_number() >= 22400 ? "allreduce:tree" : "Tree");
}

// What the record says of how collectives were carried out.
std::string collectives_note(const CudaOptions& options, const std::string& asked) {
  if (options.message_tables)
    return fmt::format(
        "collectives are the messages of the schedule's algorithms, sent and received by NCCL {}",
        nccl_version());
  const char* given = std::getenv("NCCL_ALGO");
  if (!asked.empty())
    return fmt::format("NCCL {} chooses algorithms from the environment's NCCL_ALGO={}", nccl_version(),
                       asked);
  if (given != nullptr)
    return fmt::format("NCCL {} is made to use the schedule's algorithm (NCCL_ALGO={})", nccl_version(),
                       given);
  return fmt::format("NCCL {} chooses the algorithm of each collective{}", nccl_version(),
                     options.all_reduce
                         ? fmt::format(": it has no {} all-reduce; --collectives schedule carries that out",
                                       kAlgorithmNames[static_cast<std::size_t>(*options.all_reduce)])
                         : "; NCCL_ALGO=Ring or Tree in the environment forces one");
}

// NCCL takes processes of different host ids for different machines, and does not mind then that they have
// the same GPU; between them only sockets remain. It reads these once, when it starts.
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
  std::string pci;    // its bus address
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
    std::array<char, 32> pci{};
    if (status == cudaSuccess) status = cudaDeviceGetPCIBusId(pci.data(), pci.size(), seen.device);
    seen.pci = pci.data();
    if (status == cudaSuccess) seen.id.assign(properties.uuid.bytes, sizeof properties.uuid.bytes);
  }
  if (status != cudaSuccess) seen.error = cudaGetErrorString(status);
  return seen;
}

}  // namespace

CudaChoice cuda_executor(const CudaOptions& options, Transport& transport) {
  const std::string connections = prepare_cuda();
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
  const char* algorithms = std::getenv("NCCL_ALGO");
  const std::string asked = algorithms != nullptr ? algorithms : "";
  prepare_nccl(options);
  const int near = bind_near(own.pci);  // NCCL chooses the card near the GPU by itself
  Executor& executor = choice.executor;
  if (!connections.empty())
    executor.notes.push_back(
        fmt::format("CUDA_DEVICE_MAX_CONNECTIONS={} in the environment is set to 32 for this run, as streams "
                    "that share a "
                    "hardware queue can wait for each other for ever",
                    connections));
  if (sharing > 1) {
    const bool one_machine = std::all_of(machines.begin(), machines.end(),
                                         [&](const std::string& m) { return m == machines.front(); });
    prepare_sharing(machines[static_cast<std::size_t>(transport.rank())], transport.rank(), one_machine);
    executor.notes.push_back(fmt::format(
        "{} ranks share a GPU: they take turns on it and NCCL goes through sockets, so that this run "
        "shows arithmetic and order of operations, not the speed of GPUs or of NCCL",
        sharing));
  }
  if (near > 0)
    executor.notes.push_back(
        fmt::format("rank 0 is bound to the {} processors near its GPU, others likewise", near));
  executor.notes.push_back(collectives_note(options, asked));
  executor.name = "cuda";
  executor.versions = gpu_versions();
  executor.on_processors = false;
  executor.rehearse = true;
  const int device = own.device;
  executor.arithmetic = [device](int streams) { return std::make_unique<CudaArithmetic>(device, streams); };
  const auto used = std::make_shared<UsedMemory>();
  executor.hardware = [options, device, used](const Schedule& schedule, const Wiring& wiring, int rank,
                                              Transport& between, Workload& workload,
                                              Arithmetic& arithmetic) {
    used->before_communicators = used_device_bytes(device);
    auto hardware =
        cuda_hardware(schedule, wiring, rank, between, workload, dynamic_cast<CudaArithmetic&>(arithmetic),
                      {options.patience_s, options.timed, options.message_tables, options.graphs});
    used->after_communicators = used_device_bytes(device);
    return hardware;
  };
  executor.sample_gpu = [used](const Arithmetic& arithmetic) {
    return sample_gpu(dynamic_cast<const CudaArithmetic&>(arithmetic), *used);
  };
  return choice;
}

}  // namespace rehearse
