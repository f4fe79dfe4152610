// Implements the devices and errors of the CUDA runtime.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/streams.hpp"

using namespace stand_in;

extern "C" {

cudaError_t cudaGetDeviceCount(int* gpus) {
  *gpus = settings().gpus;
  return *gpus > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= settings().gpus) return cudaErrorInvalidDevice;
  choose_device(device);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device("cudaGetDevice");
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= settings().gpus) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "GPU stand-in");
  std::memset(properties->uuid.bytes, device + 1, sizeof properties->uuid.bytes);
  properties->totalGlobalMem = settings().memory_bytes;
  properties->major = 9;
  properties->multiProcessorCount = 132;  // as on an H100
  properties->pciBusID = device + 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= settings().gpus) return cudaErrorInvalidDevice;
  if (attribute != cudaDevAttrMultiProcessorCount)
    violation(fmt::format("device attribute {} is not in the stand-in", static_cast<int>(attribute)));
  *value = 132;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (device < 0 || device >= settings().gpus) return cudaErrorInvalidDevice;
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;  // errors are returned by the calls that detect them
}

cudaError_t cudaPeekAtLastError() {
  return cudaSuccess;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    default:
      return "cudaError";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    default:
      return "an error of the stand-in's";
  }
}

}  // extern "C"
