#include "backend/cuda/cuda_executor.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "backend/cuda/cuda_arithmetic.hpp"
#include "backend/cuda/cuda_hardware.hpp"
#include "backend/cuda/gpu_identity.hpp"
#include "backend/cuda/gpu_place.hpp"
#include "backend/cuda/gpu_sampling.hpp"
#include "backend/cuda/nccl_communicator.hpp"
#include "backend/cuda/nccl_profiler.hpp"

namespace rehearse {
namespace {

// Makes NCCL use the schedule's algorithm if NCCL has it and the environment does not set another. Must be
// called before NCCL starts.
void choose_algorithm(const CudaOptions& options) {
  if (options.message_tables) return;
  if (options.all_reduce == Algorithm::ring) setenv("NCCL_ALGO", "Ring", 0);
  // Other collectives do not have these algorithms. Lists by function are allowed from 2.24 on (NCCL's
  // environment variables, NCCL_ALGO).
  const auto choose = [](const char* of_all_reduces, const char* of_all) {
    setenv("NCCL_ALGO", nccl_version_number() >= 22400 ? of_all_reduces : of_all, 0);
  };
  if (options.all_reduce == Algorithm::tree) choose("allreduce:tree", "Tree");
  if (options.all_reduce == Algorithm::nvls) choose("allreduce:nvls", "NVLS");
  if (options.all_reduce == Algorithm::nvls_tree) choose("allreduce:nvlstree", "NVLSTree");
  if (options.all_reduce == Algorithm::collnet_chain) choose("allreduce:collnetchain", "CollnetChain");
  if (options.all_reduce == Algorithm::collnet_direct) choose("allreduce:collnetdirect", "CollnetDirect");
}

// Returns the record's note on the algorithms of the collectives.
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
    return fmt::format("NCCL {} is set to use the schedule's algorithm (NCCL_ALGO={})", nccl_version(),
                       given);
  return fmt::format("NCCL {} chooses the algorithm of each collective{}", nccl_version(),
                     options.all_reduce
                         ? fmt::format(": it has no {} all-reduce; --collectives schedule runs it",
                                       kAlgorithmNames[static_cast<std::size_t>(*options.all_reduce)])
                         : "; NCCL_ALGO=Ring or Tree in the environment forces one");
}

}  // namespace

CudaChoice cuda_executor(const CudaOptions& options, Transport& transport) {
  GpuPlace place = take_gpu(transport, options.oversubscribe);
  CudaChoice choice;
  choice.refused = place.refused;
  if (!choice.refused.empty()) return choice;
  const char* algorithms = std::getenv("NCCL_ALGO");
  const std::string asked = algorithms != nullptr ? algorithms : "";
  choose_algorithm(options);
  Executor& executor = choice.executor;
  executor.notes = std::move(place.notes);
  executor.notes.push_back(collectives_note(options, asked));
  bool choices = options.choices && !options.message_tables;
  if (const std::string why = choices ? become_nccl_profiler() : ""; !why.empty()) {
    executor.notes.push_back("what NCCL chose is not recorded: " + why);
    choices = false;
  }
  executor.name = "cuda";
  executor.versions = gpu_versions();
  executor.on_processors = false;
  executor.rehearse = true;
  const int device = place.device;
  executor.arithmetic = [device](int streams) { return std::make_unique<CudaArithmetic>(device, streams); };
  const auto used = std::make_shared<UsedMemory>();
  executor.hardware = [options, choices, device, used](const Schedule& schedule, const Wiring& wiring,
                                                       int rank, Transport& between, Workload& workload,
                                                       Arithmetic& arithmetic) {
    used->before_communicators = used_device_bytes(device);
    auto hardware =
        cuda_hardware(schedule, wiring, rank, between, workload, dynamic_cast<CudaArithmetic&>(arithmetic),
                      {options.patience_s, options.timed, options.message_tables, options.graphs,
                       options.kernels, choices});
    used->after_communicators = used_device_bytes(device);
    return hardware;
  };
  executor.sample_gpu = [used](const Arithmetic& arithmetic) {
    return sample_gpu(dynamic_cast<const CudaArithmetic&>(arithmetic), *used);
  };
  return choice;
}

}  // namespace rehearse
