#include "backend/cuda/cuda_arithmetic.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "backend/cuda/check.hpp"
#include "backend/cuda/convolutions.hpp"
#include "backend/cuda/cuda_clock.hpp"
#include "backend/cuda/cuda_compressor.hpp"
#include "backend/cuda/held_stream.hpp"
#include "backend/cuda/memory_replay.hpp"
#include "backend/cuda/pieces.hpp"
#include "backend/cuda/training_kernels.hpp"
#include "backend/cuda/transformer_kernels.hpp"
#include "backend/training/element_wise.hpp"
#include "backend/training/operands.hpp"
#include "backend/training/replay.hpp"

namespace rehearse {
namespace {

// Size of the memory that replay() works on, unless a single product needs more: 1 GiB of fp32, many times
// the size of any cache.
constexpr std::size_t kScratchElements = std::size_t{256} << 20;

constexpr int kBfloatCapability = 80;  // compute capability from which products of bf16 and tf32 exist

cudaDataType_t cuda_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return CUDA_R_32F;
    case Precision::bf16:
      return CUDA_R_16BF;
    case Precision::fp16:
      return CUDA_R_16F;
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::nvfp4:
      break;
  }
  throw RunError(fmt::format("products of {} on GPUs; allowed: fp32, tf32, bf16, fp16", name_of(precision)));
}

cublasComputeType_t compute_type(Precision precision) {
  return precision == Precision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

int to_int(long size) {
  if (size > std::numeric_limits<int>::max())
    throw RunError(fmt::format("a matrix product of size {}; cuBLAS takes at most 2147483647", size));
  return static_cast<int>(size);
}

// A matrix product as a row-major caller sees it. cuBLAS is column-major and sees the transposes, so it is
// asked for c^T = op(b)^T op(a)^T.
struct Products {
  MatrixShape shape;
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  long batch = 1;
};
void multiply(cublasHandle_t handle, const Products& p, const Array& a, const Array& b, const Array& c) {
  const auto [m, n, k] = p.shape;
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  const int rows_b = to_int(p.transpose_b ? k : n), rows_a = to_int(p.transpose_a ? m : k);
  if (p.batch == 1) {
    CHECKED(cublasGemmEx(handle, operation(p.transpose_b), operation(p.transpose_a), to_int(n), to_int(m),
                         to_int(k), &p.alpha, b.data, cuda_type(b.precision), rows_b, a.data,
                         cuda_type(a.precision), rows_a, &p.beta, c.data, cuda_type(c.precision), to_int(n),
                         compute_type(a.precision), CUBLAS_GEMM_DEFAULT));
    return;
  }
  CHECKED(cublasGemmStridedBatchedEx(handle, operation(p.transpose_b), operation(p.transpose_a), to_int(n),
                                     to_int(m), to_int(k), &p.alpha, b.data, cuda_type(b.precision), rows_b,
                                     k * n, a.data, cuda_type(a.precision), rows_a, m * k, &p.beta, c.data,
                                     cuda_type(c.precision), to_int(n), m * n, to_int(p.batch),
                                     compute_type(a.precision), CUBLAS_GEMM_DEFAULT));
}

}  // namespace

struct CudaArithmetic::Device {
  struct Lane {
    cudaStream_t stream = nullptr;
    cublasHandle_t products = nullptr;
    Array scratch;  // of replay(); grows on demand
    std::unique_ptr<Convolutions> convolutions;
    bool asked_for_convolutions = false;
  };
  int number = 0, capability = 0, multiprocessors = 0;
  // `cudnn` is the version of cuDNN if it computed convolutions, else empty. `no_cudnn` is the first reason
  // why it did not compute one; empty if there was none.
  mutable std::mutex convolving;
  std::string cudnn, no_cudnn;
  std::atomic<std::size_t> allocated{0}, most_allocated{0};  // bytes
  std::string name;
  std::vector<Lane> lanes;

  // Selects the device on every call, because the current device is a property of the calling thread.
  Lane& lane(int stream) {
    CHECKED(cudaSetDevice(number));
    return lanes.at(static_cast<std::size_t>(stream));
  }

  // Returns null if cuDNN is missing.
  Convolutions* convolutions(Lane& lane) {
    if (!std::exchange(lane.asked_for_convolutions, true)) {
      try {
        lane.convolutions = std::make_unique<Convolutions>(lane.stream);
      } catch (const RunError& why) {
        refuse_convolution(why);
      }
    }
    return lane.convolutions.get();
  }
  void refuse_convolution(const RunError& why) {
    const std::lock_guard lock(convolving);
    if (no_cudnn.empty()) no_cudnn = why.what();
  }

  ~Device() {  // errors cannot be reported any more
    (void)cudaSetDevice(number);
    for (Lane& lane : lanes) {
      if (lane.stream) (void)cudaStreamSynchronize(lane.stream);
      lane.convolutions.reset();
      if (lane.scratch.data) (void)cudaFree(lane.scratch.data);
      if (lane.products) (void)cublasDestroy(lane.products);
      if (lane.stream) (void)cudaStreamDestroy(lane.stream);
    }
  }
};

CudaArithmetic::CudaArithmetic(int device, int streams) : device_(std::make_unique<Device>()) {
  device_->number = device;
  CHECKED(cudaSetDevice(device));
  cudaDeviceProp properties;
  CHECKED(cudaGetDeviceProperties(&properties, device));
  device_->name = properties.name;
  device_->capability = 10 * properties.major + properties.minor;
  device_->multiprocessors = properties.multiProcessorCount;
  for (int i = 0; i < streams; ++i) {
    Device::Lane& lane = device_->lanes.emplace_back();
    CHECKED(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    CHECKED(cublasCreate(&lane.products));
    CHECKED(cublasSetStream(lane.products, lane.stream));
  }
}

CudaArithmetic::~CudaArithmetic() = default;

int CudaArithmetic::device() const {
  return device_->number;
}

CUstream_st* CudaArithmetic::stream(int number) const {
  return device_->lanes.at(static_cast<std::size_t>(number)).stream;
}

std::size_t CudaArithmetic::most_allocated_bytes() const {
  return device_->most_allocated;
}

std::string CudaArithmetic::device_name() const {
  return device_->name;
}

DeviceTraits CudaArithmetic::traits() const {
  CHECKED(cudaSetDevice(device_->number));
  std::size_t free = 0, total = 0;
  CHECKED(cudaMemGetInfo(&free, &total));
  DeviceTraits traits;
  traits.memory_bytes = static_cast<double>(total);
  traits.compute_units = device_->multiprocessors;
  traits.compute_capability = device_->capability;
  traits.sample_s = 2e-3;  // long compared with the time until the first of many kernels begins
  traits.sample_operations = HeldStream::kMostOperations;
  return traits;
}

int CudaArithmetic::streams() const {
  return static_cast<int>(device_->lanes.size());
}

Array CudaArithmetic::allocate(std::size_t elements, Precision precision) {
  const bool in_fp32 = precision == Precision::fp32;
  if (!in_fp32 && precision != Precision::fp16 && device_->capability < kBfloatCapability)
    throw RunError(fmt::format("{} (compute capability {}.{}) has no products in {}; allowed: fp32",
                               device_->name, device_->capability / 10, device_->capability % 10,
                               name_of(precision)));
  (void)cuda_type(precision);
  Array array{nullptr, elements, precision};
  if (elements == 0) return array;
  CHECKED(cudaSetDevice(device_->number));
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, array.bytes());
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // clears the error; a failed allocation does not harm the device
    std::size_t free = 0, total = 0;
    CHECKED(cudaMemGetInfo(&free, &total));
    throw RunError(
        fmt::format("cudaMalloc failed: {:.3g} GB were requested, {:.3g} of {:.3g} GB are free on {}",
                    1e-9 * static_cast<double>(array.bytes()), 1e-9 * static_cast<double>(free),
                    1e-9 * static_cast<double>(total), device_->name));
  }
  check_status(status, "cudaMalloc");
  array.data = static_cast<std::byte*>(memory);
  const std::size_t now = device_->allocated += array.bytes();
  for (std::size_t most = device_->most_allocated;
       most < now && !device_->most_allocated.compare_exchange_weak(most, now);) {
  }
  CHECKED(cudaMemset(memory, 0, array.bytes()));
  CHECKED(cudaStreamSynchronize(cudaStreamLegacy));  // the other streams do not wait for it
  return array;
}

void CudaArithmetic::release(const Array& array) {
  if (!array.data) return;
  (void)cudaFree(array.data);  // called where throwing is not possible
  device_->allocated -= array.bytes();
}

void CudaArithmetic::settle(int stream) {
  CHECKED(cudaStreamSynchronize(device_->lane(stream).stream));
}

Timed CudaArithmetic::time(int stream, const std::function<void()>& issue) {
  const cudaStream_t lane = device_->lane(stream).stream;
  const CudaEvent begin, end;
  {
    const HeldStream held(lane);
    CHECKED(cudaEventRecord(begin.get(), lane));
    issue();
    CHECKED(cudaEventRecord(end.get(), lane));
  }
  CHECKED(cudaEventSynchronize(end.get()));
  return {elapsed_s(begin, end), 0};
}

void CudaArithmetic::nothing(int stream) {
  kernels::nothing(device_->lane(stream).stream);
}

void CudaArithmetic::copy_to_device(int stream, const float* from, const Array& to) {
  const Device::Lane& lane = device_->lane(stream);
  const void* source = from;
  std::vector<Bfloat16> narrow;
  if (to.precision == Precision::bf16) {
    for (std::size_t i = 0; i < to.elements; ++i) narrow.push_back(rounded<Bfloat16>(from[i]));
    source = narrow.data();
  }
  // From pageable memory, this call returns when the source has been read.
  CHECKED(cudaMemcpyAsync(to.data, source, to.bytes(), cudaMemcpyHostToDevice, lane.stream));
}

void CudaArithmetic::copy_to_host(int stream, const Array& from, float* to) {
  const Device::Lane& lane = device_->lane(stream);
  std::vector<Bfloat16> narrow(from.precision == Precision::bf16 ? from.elements : 0);
  void* target = narrow.empty() ? static_cast<void*>(to) : narrow.data();
  CHECKED(cudaMemcpyAsync(target, from.data, from.bytes(), cudaMemcpyDeviceToHost, lane.stream));
  CHECKED(cudaStreamSynchronize(lane.stream));
  for (std::size_t i = 0; i < narrow.size(); ++i) to[i] = to_float(narrow[i]);
}

void CudaArithmetic::copy(int stream, const Array& from, const Array& to) {
  expect_elements("the copy", to, from.elements);
  const Device::Lane& lane = device_->lane(stream);
  if (cuda_type(from.precision) == cuda_type(to.precision)) {
    CHECKED(cudaMemcpyAsync(to.data, from.data, to.bytes(), cudaMemcpyDeviceToDevice, lane.stream));
  } else {
    kernels::convert(lane.stream, from, to);
  }
}

void CudaArithmetic::gemm(int stream, const MatrixShape& shape, bool transpose_a, bool transpose_b,
                          float alpha, const Array& a, const Array& b, float beta, const Array& c) {
  expect_product(shape, a, b, c);
  multiply(device_->lane(stream).products, {shape, transpose_a, transpose_b, alpha, beta}, a, b, c);
}

void CudaArithmetic::add_bias(int stream, const Array& y, const Array& bias, bool activate) {
  (void)rows_of("the bias's result", y, bias);
  kernels::add_bias(device_->lane(stream).stream, y, bias, activate);
}

void CudaArithmetic::activation_backward(int stream, const Array& output, const Array& gradient) {
  expect_elements("the gradient", gradient, output.elements);
  kernels::activation_backward(device_->lane(stream).stream, output, gradient);
}

void CudaArithmetic::column_sums(int stream, const Array& gradient, const Array& sums, bool accumulate) {
  (void)rows_of("the summed gradient", gradient, sums);
  kernels::column_sums(device_->lane(stream).stream, gradient, sums, accumulate);
}

void CudaArithmetic::softmax_cross_entropy(int stream, const Array& logits, const Array& labels, float scale,
                                           const Array& losses, const Array& gradient) {
  (void)rows_of("the logits", logits, labels);
  expect_elements("the losses", losses, labels.elements);
  expect_elements("the logits' gradient", gradient, logits.elements);
  kernels::softmax_cross_entropy(device_->lane(stream).stream, logits, labels, scale, losses, gradient);
}

void CudaArithmetic::row_maxima(int stream, const Array& logits, const Array& maxima) {
  (void)rows_of("the maxima", logits, maxima);
  kernels::row_maxima(device_->lane(stream).stream, logits, maxima);
}

void CudaArithmetic::exponential_sums(int stream, const Array& logits, const RowLabels& labels,
                                      const Array& maxima, const Array& sums, const Array& label_logits) {
  expect_rows(labels.labels.elements, {maxima, sums, label_logits});
  (void)rows_of("the logits", logits, labels.labels);
  kernels::exponential_sums(device_->lane(stream).stream, logits, labels, maxima, sums, label_logits);
}

void CudaArithmetic::split_cross_entropy(int stream, const Array& logits, const RowLabels& labels,
                                         const RowSums& rows, float scale, const Array& losses,
                                         const Array& gradient) {
  expect_rows(labels.labels.elements, {rows.maxima, rows.sums, rows.label_logits, losses});
  expect_elements("the logits' gradient", gradient, logits.elements);
  (void)rows_of("the logits", logits, labels.labels);
  kernels::split_cross_entropy(device_->lane(stream).stream, logits, labels, rows, scale, losses, gradient);
}

void CudaArithmetic::largest(int stream, const Array& x, const Array& y) {
  expect_elements("the largest", y, x.elements);
  kernels::largest(device_->lane(stream).stream, x, y);
}

void CudaArithmetic::add(int stream, const Array& x, const Array& y) {
  expect_elements("the sum", y, x.elements);
  kernels::add(device_->lane(stream).stream, x, y);
}

void CudaArithmetic::scale(int stream, float factor, const Array& x) {
  kernels::scale(device_->lane(stream).stream, factor, x);
}

void CudaArithmetic::update(int stream, const OptimizerSettings& optimizer, long step,
                            const OptimizerArrays& arrays) {
  expect_optimizer_arrays(optimizer, arrays);
  kernels::update(device_->lane(stream).stream, optimizer, step, arrays);
}

std::unique_ptr<DeviceCompressor> CudaArithmetic::compressor(const CompressionTask& task) {
  return cuda_compressor(*this, task);
}

std::unique_ptr<TransformerArithmetic> CudaArithmetic::transformer() {
  return kernels::transformer([this](int number) { return stream(number); });
}

Array CudaArithmetic::scratch(int stream, std::size_t bytes, Precision precision) {
  Device::Lane& lane = device_->lane(stream);
  Array& array = lane.scratch;
  if (array.bytes() >= bytes && array.precision == precision) return array;
  if (array.bytes() < bytes) {
    CHECKED(cudaStreamSynchronize(lane.stream));
    release(std::exchange(array, {}));
    array = allocate(bytes / static_cast<std::size_t>(element_bytes(precision)) + 1, precision);
  }
  array = {array.data, array.bytes() / static_cast<std::size_t>(element_bytes(precision)), precision};
  kernels::fill(lane.stream, array);
  return array;
}

// Returns nothing if cuDNN is missing or refuses the convolution.
std::optional<Replayed> CudaArithmetic::convolve(int stream, const Kernel& kernel, Precision precision) {
  const ConvolutionShape& shape = kernel.convolution;
  Convolutions* const convolutions =
      shape.samples > 0 ? device_->convolutions(device_->lane(stream)) : nullptr;
  if (convolutions == nullptr) return {};
  ConvolutionSizes sizes;
  const auto lay_out = [&](Pieces& pieces) {  // results follow operands
    const auto array = [&](std::size_t elements) { return pieces.take(elements, precision); };
    const auto workspace = [&] {
      return pieces.take(sizes.workspace / static_cast<std::size_t>(element_bytes(precision)) + 1, precision);
    };
    ConvolutionArrays arrays;
    if (shape.pass != ConvolutionShape::Pass::backward_input) arrays.x = array(sizes.x);
    if (shape.pass != ConvolutionShape::Pass::backward_weight) arrays.w = array(sizes.w);
    arrays.y = array(sizes.y);
    if (shape.pass == ConvolutionShape::Pass::backward_input) arrays.x = array(sizes.x);
    if (shape.pass == ConvolutionShape::Pass::backward_weight) arrays.w = array(sizes.w);
    arrays.workspace = workspace();
    return arrays;
  };
  try {
    sizes = convolutions->sizes(shape, precision);
  } catch (const RunError& why) {
    device_->refuse_convolution(why);
    return {};
  }
  Pieces counted(nullptr);
  (void)lay_out(counted);
  Pieces pieces(scratch(stream, counted.bytes(), precision).data);
  const ConvolutionArrays arrays = lay_out(pieces);
  Replayed done;
  done.convolution = true;
  const double window = static_cast<double>(shape.kernel_height) * shape.kernel_width;
  const long times = std::max(1L, std::lround(kernel.count));
  try {
    for (long i = 0; i < times; ++i) {
      convolutions->run(shape, precision, arrays);
      done.flops += 2 * static_cast<double>(sizes.y) * shape.in_channels * window;
      done.bytes += static_cast<double>(arrays.x.bytes() + arrays.w.bytes() + arrays.y.bytes());
    }
  } catch (const RunError& why) {
    device_->refuse_convolution(why);
    return {};
  }
  const std::lock_guard lock(device_->convolving);
  if (device_->cudnn.empty()) device_->cudnn = convolutions->version();
  return done;
}

std::vector<std::string> CudaArithmetic::notes() const {
  const std::lock_guard lock(device_->convolving);
  std::vector<std::string> notes;
  if (!device_->cudnn.empty()) notes.push_back("convolutions were computed by cuDNN " + device_->cudnn);
  if (!device_->no_cudnn.empty())
    notes.push_back(fmt::format("{}convolutions were computed as matrix products of the same size: {}",
                                device_->cudnn.empty() ? "" : "some ", device_->no_cudnn));
  return notes;
}

Replayed CudaArithmetic::replay(int stream, const Kernel& kernel, Precision precision) {
  Device::Lane& lane = device_->lane(stream);
  if (kernel.kind == Kernel::Kind::memory) {
    // Kernels without products or rows only move bytes, so they can use the scratch memory's present
    // contents.
    const Precision kept = lane.scratch.data ? lane.scratch.precision : Precision::fp32;
    return replay_memory(
        lane.stream, kernel, precision, kept, 4 * kScratchElements,
        [&](std::size_t bytes, Precision filled) { return scratch(stream, bytes, filled).data; });
  }
  if (kernel.kind == Kernel::Kind::convolution)
    if (const std::optional<Replayed> done = convolve(stream, kernel, precision)) return *done;
  const ReplayPlan plan = plan_replay(kernel, kScratchElements);
  Replayed done;
  for (const ReplayPart& part : {plan.main, plan.rest}) {
    if (part.launches == 0) continue;
    const double element = element_bytes(precision);
    const Array memory =
        scratch(stream, part.scratch_elements() * static_cast<std::size_t>(element), precision);
    const auto [m, n, k] = part.shape;
    const auto size = [&](long rows, long columns) {
      return static_cast<std::size_t>(part.batch) * static_cast<std::size_t>(rows) *
             static_cast<std::size_t>(columns);
    };
    for (long launch = 0; launch < part.launches; ++launch)
      multiply(lane.products, {part.shape, false, false, 1, 0, part.batch}, memory.part(0, size(m, k)),
               memory.part(size(m, k), size(k, n)), memory.part(size(m, k) + size(k, n), size(m, n)));
    const Replayed work = part.work(element);
    done.flops += work.flops;
    done.bytes += work.bytes;
  }
  return done;
}

}  // namespace rehearse
