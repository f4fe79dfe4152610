// A stand-in for cuDNN's convolutions on NCHW maps, computed with Eigen in fp32. For each pass it lists three
// algorithms: the first is not supported, the second needs too much workspace, the third works.
// CUDNN_STAND_IN_FAULT names the function that fails.
#include <cudnn.h>
#include <fmt/format.h>

#include <Eigen/Core>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/stand_in/memory.hpp"
#include "tests/stand_in/numbers.hpp"
#include "tests/stand_in/observed.hpp"
#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/streams.hpp"

using namespace stand_in;

struct Dims4 {
  long n = 0, c = 0, h = 0, w = 0;
  bool operator==(const Dims4&) const = default;
  long elements() const { return n * c * h * w; }
};
struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  Dims4 dims;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};
struct cudnnFilterStruct {
  Dims4 dims;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};
struct cudnnConvolutionStruct {
  long padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace {

using Matrix = Eigen::MatrixXf;

constexpr int kAlgorithm = 1;  // the number of the algorithm that works, the same for each pass
std::atomic<int> descriptors{0};

bool fails(const char* function) {
  const char* fault = std::getenv("CUDNN_STAND_IN_FAULT");
  return fault != nullptr && std::strcmp(fault, function) == 0;
}

bool is_known(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}
Number number_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT ? Number::fp32 : type == CUDNN_DATA_HALF ? Number::fp16 : Number::bf16;
}
long bytes_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT ? 4 : 2;
}

// A convolution with its shapes and its inputs and outputs, all in device memory.
struct Convolution {
  Dims4 x, w, y;
  cudnnConvolutionStruct how;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::byte *x_data = nullptr, *w_data = nullptr, *y_data = nullptr;

  long window() const { return w.c * w.h * w.w; }
  std::size_t workspace() const { return static_cast<std::size_t>(4 * window() + 12); }
};

float number_at(const Convolution& c, const std::byte* data, long i) {
  return load(data + i * bytes_of(c.type), number_type(c.type));
}
void set_number(const Convolution& c, std::byte* data, long i, float value) {
  store(data + i * bytes_of(c.type), number_type(c.type), value);
}

// Calls `with` for every position inside the windows of a sample (positions in the padding are skipped), with
// the element's index in x and its row and column in the sample's matrix [window, output pixels].
template <class With>
void for_windows(const Convolution& c, long sample, With with) {
  for (long row = 0; row < c.window(); ++row) {
    const long channel = row / (c.w.h * c.w.w), i = row / c.w.w % c.w.h, j = row % c.w.w;
    for (long pixel = 0; pixel < c.y.h * c.y.w; ++pixel) {
      const long h = pixel / c.y.w * c.how.stride_h - c.how.padding_h + i;
      const long w = pixel % c.y.w * c.how.stride_w - c.how.padding_w + j;
      if (h < 0 || h >= c.x.h || w < 0 || w >= c.x.w) continue;
      with(((sample * c.x.c + channel) * c.x.h + h) * c.x.w + w, row, pixel);
    }
  }
}

Matrix windows(const Convolution& c, long sample) {
  Matrix result = Matrix::Zero(c.window(), c.y.h * c.y.w);
  for_windows(c, sample,
              [&](long at, long row, long pixel) { result(row, pixel) = number_at(c, c.x_data, at); });
  return result;
}
Matrix filters(const Convolution& c) {  // [out, window]
  Matrix result(c.w.n, c.window());
  for (long i = 0; i < result.size(); ++i) result(i / c.window(), i % c.window()) = number_at(c, c.w_data, i);
  return result;
}
Matrix outputs(const Convolution& c, long sample) {  // [out, pixels]
  const long pixels = c.y.h * c.y.w;
  Matrix result(c.y.c, pixels);
  for (long i = 0; i < result.size(); ++i)
    result(i / pixels, i % pixels) = number_at(c, c.y_data, sample * result.size() + i);
  return result;
}

void forward(const Convolution& c) {
  const Matrix w = filters(c);
  for (long sample = 0; sample < c.x.n; ++sample) {
    const Matrix y = w * windows(c, sample);
    for (long i = 0; i < y.size(); ++i)
      set_number(c, c.y_data, sample * y.size() + i, y(i / y.cols(), i % y.cols()));
  }
}

void backward_data(const Convolution& c) {
  const Matrix w = filters(c);
  std::vector<float> dx(static_cast<std::size_t>(c.x.elements()), 0);
  for (long sample = 0; sample < c.x.n; ++sample) {
    const Matrix gradient = w.transpose() * outputs(c, sample);
    for_windows(c, sample, [&](long at, long row, long pixel) {
      dx[static_cast<std::size_t>(at)] += gradient(row, pixel);
    });
  }
  for (long i = 0; i < c.x.elements(); ++i) set_number(c, c.x_data, i, dx[static_cast<std::size_t>(i)]);
}

void backward_filter(const Convolution& c) {
  Matrix sum = Matrix::Zero(c.w.n, c.window());
  for (long sample = 0; sample < c.x.n; ++sample) sum += outputs(c, sample) * windows(c, sample).transpose();
  for (long i = 0; i < sum.size(); ++i) set_number(c, c.w_data, i, sum(i / c.window(), i % c.window()));
}

// Returns whether the descriptors agree, i.e. describe one and the same convolution.
bool fit(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& how,
         const cudnnTensorStruct& y) {
  const auto out = [](long in, long kernel, long padding, long stride) {
    return (in + 2 * padding - kernel) / stride + 1;
  };
  const Dims4 expected{x.dims.n, w.dims.n, out(x.dims.h, w.dims.h, how.padding_h, how.stride_h),
                       out(x.dims.w, w.dims.w, how.padding_w, how.stride_w)};
  return w.dims.c == x.dims.c && y.dims == expected && x.type == w.type && x.type == y.type;
}

Convolution convolution_of(const cudnnTensorStruct& x, const cudnnFilterStruct& w,
                           const cudnnConvolutionStruct& how, const cudnnTensorStruct& y) {
  Convolution c;
  c.x = x.dims;
  c.w = w.dims;
  c.y = y.dims;
  c.how = how;
  c.type = x.type;
  return c;
}

template <class Algorithm>
cudnnStatus_t name_algorithms(const char* call, const cudnnTensorStruct& x, const cudnnFilterStruct& w,
                              const cudnnConvolutionStruct& how, const cudnnTensorStruct& y, int most,
                              int* count, Algorithm* all) {
  if (fails(call)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!fit(x, w, how, y)) return CUDNN_STATUS_BAD_PARAM;
  if (most < 3) violation(fmt::format("{} with room for {} algorithms", call, most));
  *count = 3;
  using Name = decltype(all->algo);
  for (int i = 0; i < *count; ++i) {
    all[i] = {};
    all[i].algo = static_cast<Name>(i == 2 ? kAlgorithm : 0);
    all[i].status = i == 0 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    all[i].memory = i == 2 ? convolution_of(x, w, how, y).workspace() : std::size_t{1} << 40;
    all[i].mathType = how.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t carry_out(const char* call, cudnnHandle_t handle, Convolution c, int algorithm, void* workspace,
                        std::size_t workspace_bytes, const void* alpha, const void* beta,
                        void (*work)(const Convolution&)) {
  if (fails(call)) return CUDNN_STATUS_NOT_SUPPORTED;
  expect_stream(handle->stream, call);
  float factors[2] = {};
  std::memcpy(&factors[0], alpha, sizeof(float));
  std::memcpy(&factors[1], beta, sizeof(float));
  if (factors[0] != 1 || factors[1] != 0)
    violation(fmt::format("{}: the stand-in has no alpha or beta", call));
  if (algorithm != kAlgorithm) violation(fmt::format("{} by an algorithm that does not do it", call));
  if (workspace_bytes < c.workspace()) violation(fmt::format("{} with too little workspace", call));
  if (c.type != CUDNN_DATA_FLOAT && c.how.math != CUDNN_TENSOR_OP_MATH)
    violation(fmt::format("{} of 16 bits without tensor cores", call));
  const auto expect = [&](const std::byte* data, const Dims4& dims) {
    expect_range(data, static_cast<std::size_t>(dims.elements() * bytes_of(c.type)), call);
  };
  expect(c.x_data, c.x);
  expect(c.w_data, c.w);
  expect(c.y_data, c.y);
  expect_range(workspace, workspace_bytes, call);
  push_kernel(handle->stream, call, [=] {
    std::memset(workspace, 0xff, workspace_bytes);  // the workspace does not overlap operands or results
    work(c);
  });
  return CUDNN_STATUS_SUCCESS;
}

std::byte* bytes_at(const void* data) {
  return static_cast<std::byte*>(const_cast<void*>(data));
}

template <class Descriptor>
cudnnStatus_t create(Descriptor** descriptor) {
  *descriptor = new Descriptor;
  ++descriptors;
  return CUDNN_STATUS_SUCCESS;
}
template <class Descriptor>
cudnnStatus_t destroy(Descriptor* descriptor) {
  delete descriptor;
  --descriptors;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    default:
      return "CUDNN_STATUS_NOT_SUPPORTED";
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  (void)current_device("cudnnCreate");
  if (fails("cudnnCreate")) return CUDNN_STATUS_NOT_INITIALIZED;
  return create(handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  const cudnnStatus_t status = destroy(handle);
  if (descriptors < 0) violation("cudnnDestroy of what was not created");
  return status;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensor) {
  return create(tensor);
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  return destroy(tensor);
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  *tensor = {{n, c, h, w}, type};
  const bool known = format == CUDNN_TENSOR_NCHW && is_known(type);
  return !known                        ? CUDNN_STATUS_NOT_SUPPORTED
         : tensor->dims.elements() > 0 ? CUDNN_STATUS_SUCCESS
                                       : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filter) {
  return create(filter);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  return destroy(filter);
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  *filter = {{k, c, h, w}, type};
  const bool known = format == CUDNN_TENSOR_NCHW && is_known(type);
  return !known                        ? CUDNN_STATUS_NOT_SUPPORTED
         : filter->dims.elements() > 0 ? CUDNN_STATUS_SUCCESS
                                       : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convolution) {
  return create(convolution);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
  return destroy(convolution);
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int padding_h,
                                              int padding_w, int stride_h, int stride_w, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computed_in) {
  if (padding_h < 0 || padding_w < 0 || stride_h < 1 || stride_w < 1) return CUDNN_STATUS_BAD_PARAM;
  if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION ||
      computed_in != CUDNN_DATA_FLOAT)
    return CUDNN_STATUS_NOT_SUPPORTED;
  *convolution = {padding_h, padding_w, stride_h, stride_w, CUDNN_DEFAULT_MATH};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
  convolution->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t how,
                                                     const cudnnTensorDescriptor_t y, const int most,
                                                     int* count, cudnnConvolutionFwdAlgoPerf_t* all) {
  return name_algorithms("cudnnGetConvolutionForwardAlgorithm_v7", *x, *w, *how, *y, most, count, all);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t dy,
                                                          const cudnnConvolutionDescriptor_t how,
                                                          const cudnnTensorDescriptor_t dx, const int most,
                                                          int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* all) {
  return name_algorithms("cudnnGetConvolutionBackwardDataAlgorithm_v7", *dx, *w, *how, *dy, most, count, all);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t dy,
                                                            const cudnnConvolutionDescriptor_t how,
                                                            const cudnnFilterDescriptor_t dw, const int most,
                                                            int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* all) {
  return name_algorithms("cudnnGetConvolutionBackwardFilterAlgorithm_v7", *x, *dw, *how, *dy, most, count,
                         all);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      const cudnnTensorDescriptor_t x, const void* x_data,
                                      const cudnnFilterDescriptor_t w, const void* w_data,
                                      const cudnnConvolutionDescriptor_t how,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* beta,
                                      const cudnnTensorDescriptor_t y, void* y_data) {
  if (!fit(*x, *w, *how, *y)) return CUDNN_STATUS_BAD_PARAM;
  Convolution c = convolution_of(*x, *w, *how, *y);
  c.x_data = bytes_at(x_data), c.w_data = bytes_at(w_data), c.y_data = bytes_at(y_data);
  return carry_out("cudnnConvolutionForward", handle, c, algorithm, workspace, workspace_bytes, alpha, beta,
                   forward);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           const cudnnFilterDescriptor_t w, const void* w_data,
                                           const cudnnTensorDescriptor_t dy, const void* dy_data,
                                           const cudnnConvolutionDescriptor_t how,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t workspace_bytes, const void* beta,
                                           const cudnnTensorDescriptor_t dx, void* dx_data) {
  if (!fit(*dx, *w, *how, *dy)) return CUDNN_STATUS_BAD_PARAM;
  Convolution c = convolution_of(*dx, *w, *how, *dy);
  c.x_data = bytes_at(dx_data), c.w_data = bytes_at(w_data), c.y_data = bytes_at(dy_data);
  return carry_out("cudnnConvolutionBackwardData", handle, c, algorithm, workspace, workspace_bytes, alpha,
                   beta, backward_data);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             const cudnnTensorDescriptor_t x, const void* x_data,
                                             const cudnnTensorDescriptor_t dy, const void* dy_data,
                                             const cudnnConvolutionDescriptor_t how,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
                                             std::size_t workspace_bytes, const void* beta,
                                             const cudnnFilterDescriptor_t dw, void* dw_data) {
  if (!fit(*x, *dw, *how, *dy)) return CUDNN_STATUS_BAD_PARAM;
  Convolution c = convolution_of(*x, *dw, *how, *dy);
  c.x_data = bytes_at(x_data), c.w_data = bytes_at(dw_data), c.y_data = bytes_at(dy_data);
  return carry_out("cudnnConvolutionBackwardFilter", handle, c, algorithm, workspace, workspace_bytes, alpha,
                   beta, backward_filter);
}

}  // extern "C"
