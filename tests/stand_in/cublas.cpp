// Stand-in for the matrix products of cuBLAS: computes them with Eigen in fp32.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <Eigen/Core>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/stand_in/memory.hpp"
#include "tests/stand_in/numbers.hpp"
#include "tests/stand_in/observed.hpp"
#include "tests/stand_in/settings.hpp"
#include "tests/stand_in/streams.hpp"

using namespace stand_in;

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

// A matrix in column-major order, as cuBLAS stores it.
struct Operand {
  std::byte* data = nullptr;
  cudaDataType_t type = CUDA_R_32F;
  long rows = 0, columns = 0, leading = 0;

  std::size_t element() const { return type == CUDA_R_32F ? 4 : 2; }
  std::size_t bytes() const {
    return columns == 0 ? 0 : element() * static_cast<std::size_t>((columns - 1) * leading + rows);
  }
};

Number number_type(cudaDataType_t type) {
  return type == CUDA_R_32F ? Number::fp32 : type == CUDA_R_16F ? Number::fp16 : Number::bf16;
}

Eigen::MatrixXf matrix(const Operand& operand) {
  Eigen::MatrixXf result(operand.rows, operand.columns);
  for (long j = 0; j < operand.columns; ++j)
    for (long i = 0; i < operand.rows; ++i)
      result(i, j) =
          load(operand.data + operand.element() * static_cast<std::size_t>(i + j * operand.leading),
               number_type(operand.type));
  return result;
}

struct Product {
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 0;
  Operand a, b, c;
};

void multiply(const Product& p) {
  Eigen::MatrixXf a = matrix(p.a), b = matrix(p.b);
  if (p.transpose_a) a.transposeInPlace();
  if (p.transpose_b) b.transposeInPlace();
  Eigen::MatrixXf sum = p.alpha * (a * b);
  if (p.beta != 0) sum += p.beta * matrix(p.c);  // with beta = 0, cuBLAS does not read C
  for (long j = 0; j < p.c.columns; ++j)
    for (long i = 0; i < p.c.rows; ++i)
      store(p.c.data + p.c.element() * static_cast<std::size_t>(i + j * p.c.leading), number_type(p.c.type),
            sum(i, j));
}

bool is_known(cudaDataType_t type) {
  return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}

struct Factor {
  const void* data = nullptr;
  cudaDataType_t type = CUDA_R_32F;
  int leading = 0;
  long long stride = 0;  // elements between consecutive products of a batch
};

cublasStatus_t products(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                        int k, const void* alpha, const Factor& a, const Factor& b, const void* beta,
                        const Factor& c, int batch) {
  expect_stream(handle->stream, "a matrix product");
  Product p;
  p.transpose_a = of_a != CUBLAS_OP_N;
  p.transpose_b = of_b != CUBLAS_OP_N;
  std::memcpy(&p.alpha, alpha, sizeof p.alpha);
  std::memcpy(&p.beta, beta, sizeof p.beta);
  const auto operand = [](const Factor& f, bool transpose, long rows, long columns) {
    return Operand{const_cast<std::byte*>(bytes_of(f.data)), f.type, transpose ? columns : rows,
                   transpose ? rows : columns, f.leading};
  };
  p.a = operand(a, p.transpose_a, m, k);
  p.b = operand(b, p.transpose_b, k, n);
  p.c = operand(c, false, m, n);
  for (const Operand& o : {p.a, p.b, p.c})
    if (!is_known(o.type) || o.leading < o.rows || o.rows < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (a.type != b.type || (c.type != a.type && c.type != CUDA_R_32F)) return CUBLAS_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < batch; ++i) {
    Product one = p;
    const auto move = [&](Operand& o, const Factor& f) {
      o.data += static_cast<std::ptrdiff_t>(o.element()) * f.stride * i;
      expect_range(o.data, o.bytes(), "a matrix product");
    };
    move(one.a, a);
    move(one.b, b);
    move(one.c, c);
    push_kernel(handle->stream, "gemm", [one] { multiply(one); });
  }
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  (void)current_device("cublasCreate");
  *handle = new cublasContext;
  count(&Counts::cublas_handles, 1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  count(&Counts::cublas_handles, -1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, std::size_t bytes) {
  expect_range(workspace, bytes, "cublasSetWorkspace");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType part, int* value) {
  *value = part == MAJOR_VERSION   ? CUBLAS_VER_MAJOR
           : part == MINOR_VERSION ? CUBLAS_VER_MINOR
                                   : CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "CUBLAS_STATUS";
}

const char* cublasGetStatusString(cublasStatus_t) {
  return "an error of the stand-in's";
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType type_a,
                            int leading_a, const void* b, cudaDataType type_b, int leading_b,
                            const void* beta, void* c, cudaDataType type_c, int leading_c,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  return products(handle, of_a, of_b, m, n, k, alpha, {a, type_a, leading_a}, {b, type_b, leading_b}, beta,
                  {c, type_c, leading_c}, 1);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t of_a,
                                          cublasOperation_t of_b, int m, int n, int k, const void* alpha,
                                          const void* a, cudaDataType type_a, int leading_a,
                                          long long stride_a, const void* b, cudaDataType type_b,
                                          int leading_b, long long stride_b, const void* beta, void* c,
                                          cudaDataType type_c, int leading_c, long long stride_c, int batch,
                                          cublasComputeType_t, cublasGemmAlgo_t) {
  return products(handle, of_a, of_b, m, n, k, alpha, {a, type_a, leading_a, stride_a},
                  {b, type_b, leading_b, stride_b}, beta, {c, type_c, leading_c, stride_c}, batch);
}

}  // extern "C"
