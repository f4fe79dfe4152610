// Defines the device code of softmax cross-entropy, for ranks that have all classes and for ranks that share
// them.
#pragma once

#include "backend/cuda/kernel_code.hpp"

namespace rehearse::kernels::device {

// One block handles one row.
template <class Gradient>
__global__ void softmax_cross_entropy(std::size_t classes, const float* logits, const float* labels,
                                      float scale, float* losses, Gradient* gradient) {
  __shared__ float shared[kThreads / kWarp];
  const std::size_t row = blockIdx.x;
  const float* x = logits + row * classes;
  const long long right = llrintf(labels[row]);
  const bool known = right >= 0 && right < static_cast<long long>(classes);
  const float right_logit = known ? x[right] : nanf("");
  float most = -INFINITY;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) most = fmaxf(most, x[j]);
  most = over_block(most, shared, Largest());
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) sum += expf(x[j] - most);
  sum = over_block(sum, shared, Sum());
  if (threadIdx.x == 0) losses[row] = logf(sum) + most - right_logit;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) {
    const float p = expf(x[j] - most) / sum;
    gradient[row * classes + j] =
        rounded<Gradient>(scale * (p - (static_cast<long long>(j) == right ? 1.0f : 0.0f)));
  }
}

// The next three kernels do the same where each rank has some of the classes. One block handles one row.
inline __global__ void row_maxima(std::size_t classes, const float* logits, float* maxima) {
  __shared__ float shared[kThreads / kWarp];
  const float* x = logits + blockIdx.x * classes;
  float most = -INFINITY;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) most = fmaxf(most, x[j]);
  most = over_block(most, shared, Largest());
  if (threadIdx.x == 0) maxima[blockIdx.x] = most;
}

// Returns the index of the row's label among this rank's classes, or -1 if it is not one of them.
__device__ inline long long label_here(const float* labels, std::size_t first_class, std::size_t classes) {
  const long long right = llrintf(labels[blockIdx.x]) - static_cast<long long>(first_class);
  return right >= 0 && right < static_cast<long long>(classes) ? right : -1;
}

inline __global__ void exponential_sums(std::size_t classes, const float* logits, const float* labels,
                                        std::size_t first_class, const float* maxima, float* sums,
                                        float* label_logits) {
  __shared__ float shared[kThreads / kWarp];
  const float* x = logits + blockIdx.x * classes;
  const long long right = label_here(labels, first_class, classes);
  const float most = maxima[blockIdx.x];
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) sum += expf(x[j] - most);
  sum = over_block(sum, shared, Sum());
  if (threadIdx.x > 0) return;
  sums[blockIdx.x] = sum;
  label_logits[blockIdx.x] = right < 0 ? 0.0f : x[right];
}

template <class Gradient>
__global__ void split_cross_entropy(std::size_t classes, const float* logits, const float* labels,
                                    std::size_t first_class, const float* maxima, const float* sums,
                                    const float* label_logits, float scale, float* losses,
                                    Gradient* gradient) {
  const std::size_t row = blockIdx.x;
  const float* x = logits + row * classes;
  const long long right = label_here(labels, first_class, classes);
  const float most = maxima[row], sum = sums[row];
  if (threadIdx.x == 0) losses[row] = logf(sum) + most - label_logits[row];
  for (std::size_t j = threadIdx.x; j < classes; j += blockDim.x) {
    const float p = expf(x[j] - most) / sum;
    gradient[row * classes + j] =
        rounded<Gradient>(scale * (p - (static_cast<long long>(j) == right ? 1.0f : 0.0f)));
  }
}

}  // namespace rehearse::kernels::device
