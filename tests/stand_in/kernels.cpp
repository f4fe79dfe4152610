// Implements kernel launches: runs the actual code of the backend's kernels on the host, one thread block
// after the other.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/stand_in/observed.hpp"
#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/streams.hpp"

// Defines CUDA C++'s built-in names. The threads of a block run as fibers of one host thread, so a __shared__
// variable is a thread-local variable of that host thread.
#undef __shared__
#define __shared__ static thread_local
namespace {

thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;

// Runs the threads of a block one after the other up to the next barrier, in a new random order after each
// barrier, so that a missing barrier changes the result.
class Block {
public:
  explicit Block(const std::function<void()>& code) : code_(code) {}

  void run(std::minstd_rand& random) {
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    exchanged_[0].assign(threads, 0);
    exchanged_[1].assign(threads, 0);
    current_ = this;
    for (unsigned i = 0; i < threads; ++i) threads_.push_back(std::make_unique<Thread>(*this, i));
    std::vector<unsigned> order(threads);
    std::iota(order.begin(), order.end(), 0U);
    while (!order.empty()) {
      std::shuffle(order.begin(), order.end(), random);
      for (const unsigned i : order) resume(*threads_[i]);
      std::erase_if(order, [&](unsigned i) { return !threads_[i]->fiber; });
    }
    current_ = nullptr;
  }

  static Block& current(const char* call) {
    if (current_ == nullptr)
      stand_in::violation(
          fmt::format("{} in a kernel that the stand-in takes for one without barriers", call));
    return *current_;
  }
  void barrier() { running_->scheduler = std::move(running_->scheduler).resume(); }
  // Alternates between two buffers, so that no thread overwrites values that others have yet to read.
  float from_thread(float value, unsigned far) {
    std::vector<float>& buffer = exchanged_[running_->exchanges++ % 2];
    const unsigned own = running_->number;
    buffer[own] = value;
    barrier();
    return buffer[own ^ far];
  }

private:
  struct Thread {
    Thread(Block& block, unsigned i)
        : number(i), fiber(std::allocator_arg, stacks(), [this, &block](boost::context::fiber&& back) {
            scheduler = std::move(back);
            block.code_();
            return std::move(scheduler);
          }) {}
    unsigned number, exchanges = 0;
    boost::context::fiber scheduler, fiber;
  };
  void resume(Thread& thread) {
    running_ = &thread;
    threadIdx = {thread.number % blockDim.x, thread.number / blockDim.x % blockDim.y,
                 thread.number / (blockDim.x * blockDim.y)};
    thread.fiber = std::move(thread.fiber).resume();
  }

  // Returns the pool of reusable fiber stacks, 64 KiB each.
  static boost::context::pooled_fixedsize_stack& stacks() {
    thread_local boost::context::pooled_fixedsize_stack pool(std::size_t{64} << 10);
    return pool;
  }

  static thread_local Block* current_;
  const std::function<void()>& code_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* running_ = nullptr;
  std::vector<float> exchanged_[2];
};
thread_local Block* Block::current_ = nullptr;

void __syncthreads() {  // NOLINT(bugprone-reserved-identifier): CUDA's name
  Block::current("__syncthreads").barrier();
}
float __shfl_xor_sync(unsigned, float value, int far) {  // NOLINT(bugprone-reserved-identifier)
  return Block::current("__shfl_xor_sync").from_thread(value, static_cast<unsigned>(far));
}

// Needs no atomic operation: blocks run one after the other, and streams order the kernels that add to the
// same numbers.
unsigned atomicAdd(unsigned* to, unsigned value) {
  const unsigned before = *to;
  *to += value;
  return before;
}

}  // namespace

#include "backend/cuda/channel_code.hpp"
#include "backend/cuda/compression_code.hpp"
#include "backend/cuda/kernel_code.hpp"
#include "backend/cuda/loss_code.hpp"
#include "backend/cuda/row_code.hpp"
#include "backend/cuda/transformer_code.hpp"

namespace {

using namespace stand_in;
namespace device = rehearse::kernels::device;
using rehearse::Bfloat16;
using rehearse::Optimizer;

struct Shape {
  dim3 grid, block;
};

void run_grid(const Shape& shape, bool has_barriers, const std::function<void()>& code) {
  thread_local std::minstd_rand random(static_cast<unsigned>(settings().seed + 1));
  gridDim = shape.grid;
  blockDim = shape.block;
  for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) {
      if (has_barriers) {
        Block(code).run(random);
        continue;
      }
      for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) code();
    }
}

// By kernel name: a function that copies the arguments of a launch and returns a function that runs the
// kernel with them.
using Bind = std::function<std::function<void(const Shape&)>(void** arguments)>;
std::map<std::string, Bind>& launchable() {
  static std::map<std::string, Bind> by_name;
  return by_name;
}

template <class... A>
Bind binder(void (*kernel)(A...), bool has_barriers) {
  return [=](void** arguments) {
    const auto taken = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::tuple<A...>(*static_cast<A*>(arguments[i])...);
    }
    (std::index_sequence_for<A...>());
    return [=](const Shape& shape) { run_grid(shape, has_barriers, [&] { std::apply(kernel, taken); }); };
  };
}

// Registers a kernel under its linker symbol, which is also the name under which nvcc registers it.
template <class... A>
void add(void (*kernel)(A...), bool has_barriers = false) {
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(kernel), &found) == 0 || found.dli_sname == nullptr)
    violation("a kernel of the stand-in has no symbol");
  launchable()[found.dli_sname] = binder(kernel, has_barriers);
}

template <class First, class Second>
void add_pair() {
  add(device::convert<First, Second>);
  add(device::add_bias<First, Second>);
  add(device::activation_backward<First, Second>);
  add(device::column_sums<First, Second>, true);
  add(device::add<First, Second>);
  add(device::largest<First, Second>);
  add(device::update<Optimizer::sgd, First, Second>);
  add(device::update<Optimizer::momentum, First, Second>);
  add(device::update<Optimizer::adam, First, Second>);
}

void add_compression() {
  add(device::to_halves);
  add(device::from_halves);
  add(device::clear);
  add(device::add_scaled);
  add(device::sums_of_squares, true);
  add(device::root_mean_square, true);
  add(device::put_signs);
  add(device::add_signs);
  add(device::take_signs);
  add(device::begin_search);
  add(device::count_digits, true);
  add(device::choose_digit);
  add(device::count_chunks);
  add(device::sum_before, true);
  add(device::take_largest);
  add(device::add_at);
  add(device::orthonormalize, true);
}

template <class T, int V>
void add_rows() {
  add(device::norm_forward<T, V>, true);
  add(device::norm_backward<T, V>, true);
  add(device::softmax_forward<T, V>, true);
  add(device::softmax_backward<T, V>, true);
  add(device::column_parts<T, V, false>, true);
  add(device::column_parts<T, V, true>, true);
  add(device::channel_parts<T, V, false>, true);
  add(device::channel_parts<T, V, true>, true);
  add(device::batch_norm_forward<T, V>);
  add(device::batch_norm_backward<T, V>);
}
template <class T>
void add_memory() {
  constexpr int kPack = 16 / sizeof(T);
  add(device::element_wise<T, kPack>);
  add_rows<T, kPack>();
  if constexpr (kPack > 4) add_rows<T, 4>();
  add_rows<T, 1>();
}

template <class... Piece>
void add_pieces(const std::tuple<Piece...>*) {
  (add(device::each<Piece>), ...);
}

void add_all() {
  add_pieces(static_cast<const rehearse::elements::All*>(nullptr));
  add_pair<float, float>();
  add_pair<float, Bfloat16>();
  add_pair<Bfloat16, float>();
  add_pair<Bfloat16, Bfloat16>();
  add(device::softmax_cross_entropy<float>, true);
  add(device::softmax_cross_entropy<Bfloat16>, true);
  add(device::row_maxima, true);
  add(device::exponential_sums, true);
  add(device::split_cross_entropy<float>);
  add(device::split_cross_entropy<Bfloat16>);
  add(device::scale<float>);
  add(device::scale<Bfloat16>);
  add(device::fill<float>);
  add(device::fill<Bfloat16>);
  add(device::fill<device::Half>);
  add(device::nothing);
  add_compression();
  add(device::add_parts);
  add_memory<float>();
  add_memory<Bfloat16>();
  add_memory<device::Half>();
}

struct Configuration {
  Shape shape;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration> configurations;

std::map<const void*, std::string>& kernel_names() {
  static std::map<const void*, std::string> by_host_function;
  return by_host_function;
}

cudaError_t launch(const void* kernel, const Shape& shape, void** arguments, cudaStream_t stream) {
  static std::once_flag once;
  std::call_once(once, add_all);
  expect_stream(stream, "a kernel's launch");
  const std::string& name = kernel_names()[kernel];
  const auto found = launchable().find(name);
  if (found == launchable().end()) violation(fmt::format("kernel {} is not in the stand-in", name));
  const unsigned threads = shape.block.x * shape.block.y * shape.block.z;
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z != 1 || threads == 0 || threads > 1024)
    return cudaErrorInvalidConfiguration;
  push_kernel(stream, name, [run = found->second(arguments), shape] { run(shape); });
  return cudaSuccess;
}

}  // namespace

// Functions that nvcc-generated code calls to register and launch kernels; CUDA's public headers do not
// declare them.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host_function, char*, const char* name, int, void*, void*,
                            void*, void*, int*) {
  kernel_names()[host_function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  configurations.push_back({{grid, block}, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  const Configuration last = configurations.back();
  configurations.pop_back();
  *grid = last.shape.grid;
  *block = last.shape.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(const void** kernel, const void* host_function) {
  *kernel = host_function;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t,
                               cudaStream_t stream) {
  return launch(kernel, {grid, block}, arguments, stream);
}
// NOLINTEND(bugprone-reserved-identifier)
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t stream) {  // before CUDA 13
  return launch(kernel, {grid, block}, arguments, stream);
}
}
