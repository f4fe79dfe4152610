#include "backend/cuda/convolutions.hpp"

#include "models/text/error.hpp"

#ifdef REHEARSE_HAVE_CUDNN
#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#endif

namespace rehearse {

#ifdef REHEARSE_HAVE_CUDNN

namespace {

using ConvolutionPass = ConvolutionShape::Pass;

// cuDNN's functions; all pointers are set.
struct Library {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnCreateTensorDescriptor) create_tensor = nullptr;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor = nullptr;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = nullptr;
  decltype(&cudnnCreateFilterDescriptor) create_filter = nullptr;
  decltype(&cudnnSetFilter4dDescriptor) set_filter = nullptr;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter = nullptr;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution = nullptr;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution = nullptr;
  decltype(&cudnnSetConvolutionMathType) set_math = nullptr;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution = nullptr;
  decltype(&cudnnGetConvolutionForwardAlgorithm_v7) forward_algorithms = nullptr;
  decltype(&cudnnGetConvolutionBackwardDataAlgorithm_v7) backward_data_algorithms = nullptr;
  decltype(&cudnnGetConvolutionBackwardFilterAlgorithm_v7) backward_filter_algorithms = nullptr;
  decltype(&cudnnConvolutionForward) forward = nullptr;
  decltype(&cudnnConvolutionBackwardData) backward_data = nullptr;
  decltype(&cudnnConvolutionBackwardFilter) backward_filter = nullptr;

  // The library stays loaded because cuDNN loads parts of itself on demand.
  Library() {
    const std::string versioned = fmt::format("libcudnn.so.{}", CUDNN_MAJOR);
    void* handle = dlopen(versioned.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* error = handle == nullptr ? dlerror() : nullptr;
    const std::string why = error == nullptr ? "" : error;
    if (handle == nullptr) handle = dlopen("libcudnn.so", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw RunError(why + " (add the folder with cuDNN to LD_LIBRARY_PATH)");
    find(handle, "cudnnGetVersion", get_version);
    find(handle, "cudnnGetErrorString", error_string);
    find(handle, "cudnnCreate", create);
    find(handle, "cudnnDestroy", destroy);
    find(handle, "cudnnSetStream", set_stream);
    find(handle, "cudnnCreateTensorDescriptor", create_tensor);
    find(handle, "cudnnSetTensor4dDescriptor", set_tensor);
    find(handle, "cudnnDestroyTensorDescriptor", destroy_tensor);
    find(handle, "cudnnCreateFilterDescriptor", create_filter);
    find(handle, "cudnnSetFilter4dDescriptor", set_filter);
    find(handle, "cudnnDestroyFilterDescriptor", destroy_filter);
    find(handle, "cudnnCreateConvolutionDescriptor", create_convolution);
    find(handle, "cudnnSetConvolution2dDescriptor", set_convolution);
    find(handle, "cudnnSetConvolutionMathType", set_math);
    find(handle, "cudnnDestroyConvolutionDescriptor", destroy_convolution);
    find(handle, "cudnnGetConvolutionForwardAlgorithm_v7", forward_algorithms);
    find(handle, "cudnnGetConvolutionBackwardDataAlgorithm_v7", backward_data_algorithms);
    find(handle, "cudnnGetConvolutionBackwardFilterAlgorithm_v7", backward_filter_algorithms);
    find(handle, "cudnnConvolutionForward", forward);
    find(handle, "cudnnConvolutionBackwardData", backward_data);
    find(handle, "cudnnConvolutionBackwardFilter", backward_filter);
    if (get_version() / 10000 != CUDNN_MAJOR)
      throw RunError(
          fmt::format("libcudnn.so is of version {}; allowed: {}, whose headers this was built with",
                      get_version() / 10000, CUDNN_MAJOR));
  }

  void check(cudnnStatus_t status, const char* call) const {
    if (status != CUDNN_STATUS_SUCCESS)
      throw RunError(fmt::format("{} failed: {}", call, error_string(status)));
  }

private:
  template <class Function>
  static void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) throw RunError(fmt::format("libcudnn.so lacks {}", name));
  }
};

const Library& cudnn() {
  static const Library library;
  return library;
}

cudnnDataType_t data_type(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return CUDNN_DATA_FLOAT;
    case Precision::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Precision::fp16:
      return CUDNN_DATA_HALF;
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::nvfp4:
      break;
  }
  throw RunError(fmt::format("convolutions of {}; allowed: fp32, tf32, bf16, fp16", name_of(precision)));
}

int whole_samples(const ConvolutionShape& shape) {
  return static_cast<int>(std::max(1L, std::lround(shape.samples)));
}

// cuDNN's descriptors of a convolution and the algorithm that computes it.
class Planned {
public:
  Planned(cudnnHandle_t handle, const ConvolutionShape& s, Precision precision) {
    const Library& library = cudnn();
    const cudnnDataType_t type = data_type(precision);
    const int samples = whole_samples(s);
    const auto elements = [](int a, int b, int c, int d) {
      return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c) *
             static_cast<std::size_t>(d);
    };
    sizes.x = elements(samples, s.in_channels, s.height, s.width);
    sizes.w = elements(s.out_channels, s.in_channels, s.kernel_height, s.kernel_width);
    sizes.y = elements(samples, s.out_channels, s.out_height(), s.out_width());
    try {
      library.check(library.create_tensor(&x), "cudnnCreateTensorDescriptor");
      library.check(library.create_tensor(&y), "cudnnCreateTensorDescriptor");
      library.check(library.create_filter(&w), "cudnnCreateFilterDescriptor");
      library.check(library.create_convolution(&convolution), "cudnnCreateConvolutionDescriptor");
      library.check(library.set_tensor(x, CUDNN_TENSOR_NCHW, type, samples, s.in_channels, s.height, s.width),
                    "cudnnSetTensor4dDescriptor");
      library.check(library.set_tensor(y, CUDNN_TENSOR_NCHW, type, samples, s.out_channels, s.out_height(),
                                       s.out_width()),
                    "cudnnSetTensor4dDescriptor");
      library.check(library.set_filter(w, type, CUDNN_TENSOR_NCHW, s.out_channels, s.in_channels,
                                       s.kernel_height, s.kernel_width),
                    "cudnnSetFilter4dDescriptor");
      library.check(library.set_convolution(convolution, s.padding_height, s.padding_width, s.stride,
                                            s.stride, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                    "cudnnSetConvolution2dDescriptor");
      const bool tensor_cores = precision != Precision::fp32;
      library.check(library.set_math(convolution, tensor_cores ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH),
                    "cudnnSetConvolutionMathType");
      const cudnnMathType_t math = choose_algorithm(handle, s.pass);
      if (tensor_cores) library.check(library.set_math(convolution, math), "cudnnSetConvolutionMathType");
    } catch (const RunError&) {
      destroy();
      throw;
    }
  }
  ~Planned() { destroy(); }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  cudnnTensorDescriptor_t x = nullptr, y = nullptr;
  cudnnFilterDescriptor_t w = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  int algorithm = 0;  // a value of the pass's enumeration
  ConvolutionSizes sizes;

private:
  cudnnMathType_t choose_algorithm(cudnnHandle_t handle, ConvolutionPass pass) {
    const Library& library = cudnn();
    switch (pass) {
      case ConvolutionPass::forward:
        return choose<cudnnConvolutionFwdAlgoPerf_t>(
            "cudnnGetConvolutionForwardAlgorithm_v7", [&](int most, int* found, auto* all) {
              return library.forward_algorithms(handle, x, w, convolution, y, most, found, all);
            });
      case ConvolutionPass::backward_input:
        return choose<cudnnConvolutionBwdDataAlgoPerf_t>(
            "cudnnGetConvolutionBackwardDataAlgorithm_v7", [&](int most, int* found, auto* all) {
              return library.backward_data_algorithms(handle, w, y, convolution, x, most, found, all);
            });
      case ConvolutionPass::backward_weight:
        break;
    }
    return choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
        "cudnnGetConvolutionBackwardFilterAlgorithm_v7", [&](int most, int* found, auto* all) {
          return library.backward_filter_algorithms(handle, x, y, convolution, w, most, found, all);
        });
  }

  template <class Algorithm, class Ask>
  cudnnMathType_t choose(const char* call, const Ask& ask) {
    constexpr std::size_t kMostWorkspace = std::size_t{1} << 30;
    std::array<Algorithm, 16> all{};
    int found = 0;
    cudnn().check(ask(static_cast<int>(all.size()), &found, all.data()), call);
    for (int i = 0; i < found; ++i) {
      const Algorithm& one = all[static_cast<std::size_t>(i)];
      if (one.status != CUDNN_STATUS_SUCCESS || one.memory > kMostWorkspace) continue;
      algorithm = static_cast<int>(one.algo);
      sizes.workspace = one.memory;
      return one.mathType;
    }
    throw RunError(fmt::format("{} names no algorithm with a workspace of 1 GiB or less", call));
  }

  void destroy() {
    const Library& library = cudnn();
    if (convolution != nullptr) (void)library.destroy_convolution(convolution);
    if (w != nullptr) (void)library.destroy_filter(w);
    if (y != nullptr) (void)library.destroy_tensor(y);
    if (x != nullptr) (void)library.destroy_tensor(x);
  }
};

using Key = std::tuple<ConvolutionPass, int, int, int, int, int, int, int, int, int, int, Precision>;
Key key_of(const ConvolutionShape& s, Precision precision) {
  return {s.pass,          whole_samples(s), s.in_channels, s.out_channels,   s.height,        s.width,
          s.kernel_height, s.kernel_width,   s.stride,      s.padding_height, s.padding_width, precision};
}

}  // namespace

struct Convolutions::Handle {
  struct Plan {
    std::unique_ptr<Planned> planned;
    std::string refused;  // the reason if cuDNN refused it
  };
  cudnnHandle_t handle = nullptr;
  std::map<Key, Plan> plans;

  const Planned& plan(const ConvolutionShape& shape, Precision precision) {
    const auto [at, fresh] = plans.try_emplace(key_of(shape, precision));
    Plan& plan = at->second;
    if (fresh) {
      try {
        plan.planned = std::make_unique<Planned>(handle, shape, precision);
      } catch (const RunError& error) {
        plan.refused = error.what();
      }
    }
    if (!plan.planned) throw RunError(plan.refused);
    return *plan.planned;
  }
};

Convolutions::Convolutions(CUstream_st* stream) : handle_(std::make_unique<Handle>()) {
  const Library& library = cudnn();
  library.check(library.create(&handle_->handle), "cudnnCreate");
  const cudnnStatus_t status = library.set_stream(handle_->handle, stream);
  if (status != CUDNN_STATUS_SUCCESS) (void)library.destroy(handle_->handle);
  library.check(status, "cudnnSetStream");
}

Convolutions::~Convolutions() {
  handle_->plans.clear();
  (void)cudnn().destroy(handle_->handle);
}

std::string Convolutions::version() const {
  const std::size_t number = cudnn().get_version();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

ConvolutionSizes Convolutions::sizes(const ConvolutionShape& shape, Precision precision) {
  return handle_->plan(shape, precision).sizes;
}

void Convolutions::run(const ConvolutionShape& shape, Precision precision, const ConvolutionArrays& arrays) {
  const Library& library = cudnn();
  const Planned& plan = handle_->plan(shape, precision);
  const float alpha = 1, beta = 0;
  void *const x = arrays.x.data, *const w = arrays.w.data, *const y = arrays.y.data;
  void* const workspace = plan.sizes.workspace > 0 ? arrays.workspace.data : nullptr;
  const cudnnHandle_t handle = handle_->handle;
  try {
    switch (shape.pass) {
      case ConvolutionPass::forward:
        return library.check(library.forward(handle, &alpha, plan.x, x, plan.w, w, plan.convolution,
                                             static_cast<cudnnConvolutionFwdAlgo_t>(plan.algorithm),
                                             workspace, plan.sizes.workspace, &beta, plan.y, y),
                             "cudnnConvolutionForward");
      case ConvolutionPass::backward_input:
        return library.check(library.backward_data(handle, &alpha, plan.w, w, plan.y, y, plan.convolution,
                                                   static_cast<cudnnConvolutionBwdDataAlgo_t>(plan.algorithm),
                                                   workspace, plan.sizes.workspace, &beta, plan.x, x),
                             "cudnnConvolutionBackwardData");
      case ConvolutionPass::backward_weight:
        return library.check(
            library.backward_filter(handle, &alpha, plan.x, x, plan.y, y, plan.convolution,
                                    static_cast<cudnnConvolutionBwdFilterAlgo_t>(plan.algorithm), workspace,
                                    plan.sizes.workspace, &beta, plan.w, w),
            "cudnnConvolutionBackwardFilter");
    }
  } catch (const RunError& error) {  // cuDNN would refuse it again
    Handle::Plan& refused = handle_->plans.at(key_of(shape, precision));
    refused.planned.reset();
    refused.refused = error.what();
    throw;
  }
}

#else

struct Convolutions::Handle {};
Convolutions::Convolutions(CUstream_st*) {
  throw RunError("this rehearse-run was built without cuDNN's headers");
}
Convolutions::~Convolutions() = default;
std::string Convolutions::version() const {
  return "";
}
ConvolutionSizes Convolutions::sizes(const ConvolutionShape&, Precision) {
  return {};
}
void Convolutions::run(const ConvolutionShape&, Precision, const ConvolutionArrays&) {}

#endif

}  // namespace rehearse
