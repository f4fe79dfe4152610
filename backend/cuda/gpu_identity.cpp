#include "backend/cuda/gpu_identity.hpp"

#include <fmt/format.h>

#include "backend/cuda/check.hpp"
#include "backend/cuda/nccl_communicator.hpp"

namespace rehearse {
namespace {

// Formats CUDA's version number, which is 1000 major + 10 minor.
std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

int cublas_part(libraryPropertyType part) {
  int number = 0;
  CHECKED(cublasGetProperty(part, &number));
  return number;
}

}  // namespace

std::map<std::string, std::string> gpu_versions() {
  int driver = 0, runtime = 0;
  CHECKED(cudaDriverGetVersion(&driver));
  CHECKED(cudaRuntimeGetVersion(&runtime));
  return {{"CUDA driver", cuda_version(driver)},
          {"CUDA runtime", cuda_version(runtime)},
          {"cuBLAS", fmt::format("{}.{}.{}", cublas_part(MAJOR_VERSION), cublas_part(MINOR_VERSION),
                                 cublas_part(PATCH_LEVEL))},
          {"NCCL", nccl_version()}};
}

std::string gpu_uuid(int device) {
  cudaDeviceProp properties;
  CHECKED(cudaGetDeviceProperties(&properties, device));
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  return text;
}

std::string pci_bus_id(int device) {
  char text[32] = {};
  CHECKED(cudaDeviceGetPCIBusId(text, sizeof text, device));
  return text;
}

double used_device_bytes(int device) {
  CHECKED(cudaSetDevice(device));
  std::size_t free = 0, total = 0;
  CHECKED(cudaMemGetInfo(&free, &total));
  return static_cast<double>(total - free);
}

}  // namespace rehearse
