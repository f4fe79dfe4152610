#include "backend/gpu/gpu_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "backend/runtime/placement.hpp"
#include "models/text/error.hpp"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// Returns where the module can be: beside the program, or below `lib` beside the program's folder.
std::vector<std::string> module_files() {
#ifdef REHEARSE_GPU_MODULE
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  return {folder / REHEARSE_GPU_MODULE, folder.parent_path() / "lib/rehearse" / REHEARSE_GPU_MODULE};
#else
  return {};
#endif
}

const GpuModule& module() {
  static const GpuModule& loaded = load_gpu_module(module_files());
  return loaded;
}

// Returns why some rank cannot load the module, the same at all ranks; empty: all have loaded it.
std::string refusal(Transport& transport) {
  std::string own;
  try {
    (void)module();
  } catch (const RunError& error) {
    own = error.what();
  }
  const std::vector<std::string> errors = all_gather(transport, own);
  for (std::size_t rank = 0; rank < errors.size(); ++rank)
    if (!errors[rank].empty()) return fmt::format("rank {} cannot use GPUs: {}", rank, errors[rank]);
  return "";
}

}  // namespace

bool built_for_gpus() {
  return !module_files().empty();
}

const GpuModule& load_gpu_module(const std::vector<std::string>& files) {
  std::error_code error;
  for (const std::string& file : files) {
    if (!fs::exists(file, error)) continue;
    // NCCL looks for the profiler that the module contains in all global libraries.
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle == nullptr)
      throw RunError(fmt::format("the module for GPUs, {}, cannot be loaded: {}", file, dlerror()));
    using Entry = const GpuModule*();
    auto* const entry = reinterpret_cast<Entry*>(dlsym(handle, "rehearse_gpu_module"));
    if (entry == nullptr) throw RunError(fmt::format("{} is not the module for GPUs", file));
    return *entry();
  }
  throw RunError(fmt::format("the module for GPUs is missing: there is no {}", fmt::join(files, " and no ")));
}

CudaChoice gpu_executor(const CudaOptions& options, Transport& transport) {
  if (const std::string why = refusal(transport); !why.empty()) {
    CudaChoice choice;
    choice.refused = why;
    return choice;
  }
  return module().executor(options, transport);
}

std::unique_ptr<Arithmetic> first_gpu() {
  return module().first_gpu();
}

std::unique_ptr<LinkCarrier> gpu_links(const NcclLinkOptions& options, Transport& transport) {
  if (const std::string why = refusal(transport); !why.empty()) throw RunError(why);
  return module().links(options, transport);
}

}  // namespace rehearse
