// Defines the device code of batch norm and of the sums over channels.
#pragma once

#include "backend/cuda/memory_code.hpp"

namespace rehearse::kernels::device {

// The packs of one channel of planes of `plane` elements, [samples, channels, plane]. Block (c, i) takes a
// part of channel c, whose packs are numbered through all samples.
template <int V>
struct ChannelPacks {
  std::size_t channel, channels, plane, packs, count;
  __device__ ChannelPacks(std::size_t samples, std::size_t of_channels, std::size_t of_plane)
      : channel(blockIdx.x),
        channels(of_channels),
        plane(of_plane),
        packs(of_plane / V),
        count(samples * packs) {}
  __device__ std::size_t first() const {
    return static_cast<std::size_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  }
  __device__ std::size_t step() const { return static_cast<std::size_t>(gridDim.y) * blockDim.x; }
  // Returns the offset of pack `i`, in elements; uses 32-bit numbers, which divide quickly.
  __device__ std::size_t element(std::size_t i) const {
    const unsigned sample = static_cast<unsigned>(i) / static_cast<unsigned>(packs);
    return (sample * channels + channel) * plane + (i - sample * packs) * V;
  }
};

// Sums dy and, with x, also dy times x; if x is dy, these are sums of squares.
template <class T, int V, bool with_x>
__global__ void channel_parts(std::size_t samples, std::size_t channels, std::size_t plane, const T* x,
                              const T* dy, float* parts) {
  __shared__ float shared[kThreads / kWarp];
  constexpr int kSums = with_x ? 2 : 1;
  const ChannelPacks<V> own(samples, channels, plane);
  using Own = Pack<T, V>;
  float sum = 0, along = 0;
  for (std::size_t i = own.first(); i < own.count; i += own.step()) {
    const Own d = *reinterpret_cast<const Own*>(dy + own.element(i));
    for (int v = 0; v < V; ++v) sum += number(d.at[v]);
    if constexpr (with_x) {
      const Own a = *reinterpret_cast<const Own*>(x + own.element(i));
      for (int v = 0; v < V; ++v) along += number(d.at[v]) * number(a.at[v]);
    }
  }
  sum = over_block(sum, shared, Sum());
  if constexpr (with_x) along = over_block(along, shared, Sum());
  if (threadIdx.x > 0) return;
  float* const to = parts + static_cast<std::size_t>(blockIdx.y) * kSums * channels + own.channel;
  to[0] = sum;
  if constexpr (with_x) to[channels] = along;
}

// `sums` holds the sums of x and of its squares, by channel. `statistics` gets the mean and 1 / standard
// deviation of each channel, as norm_forward does for rows.
template <class T, int V>
__global__ void batch_norm_forward(std::size_t samples, std::size_t channels, std::size_t plane,
                                   const float* sums, const T* x, const float* gain, const float* bias, T* y,
                                   float* statistics) {
  const ChannelPacks<V> own(samples, channels, plane);
  using Own = Pack<T, V>;
  const auto count = static_cast<float>(samples * plane);
  const float mean = sums[own.channel] / count;
  const float inverse = inverse_deviation(sums[channels + own.channel], mean, count);
  const float factor = inverse * gain[own.channel], offset = bias[own.channel] - mean * factor;
  for (std::size_t i = own.first(); i < own.count; i += own.step()) {
    const Own pack = *reinterpret_cast<const Own*>(x + own.element(i));
    Own result;
    for (int v = 0; v < V; ++v) put(factor * number(pack.at[v]) + offset, result.at[v]);
    *reinterpret_cast<Own*>(y + own.element(i)) = result;
  }
  if (blockIdx.y > 0 || threadIdx.x > 0) return;
  statistics[2 * own.channel] = mean;
  statistics[2 * own.channel + 1] = inverse;
}

// `sums` holds the sums of dy and of dy times x, by channel.
template <class T, int V>
__global__ void batch_norm_backward(std::size_t samples, std::size_t channels, std::size_t plane,
                                    const float* sums, const float* statistics, const float* gain, const T* x,
                                    const T* dy, T* dx) {
  const ChannelPacks<V> own(samples, channels, plane);
  using Own = Pack<T, V>;
  const auto count = static_cast<float>(samples * plane);
  const float mean = statistics[2 * own.channel], inverse = statistics[2 * own.channel + 1];
  const float sum = sums[own.channel],
              along = inverse * inverse * (sums[channels + own.channel] - mean * sum) / count;
  for (std::size_t i = own.first(); i < own.count; i += own.step()) {
    const Own a = *reinterpret_cast<const Own*>(x + own.element(i)),
              d = *reinterpret_cast<const Own*>(dy + own.element(i));
    Own result;
    for (int v = 0; v < V; ++v)
      put(gain[own.channel] * inverse * (number(d.at[v]) - sum / count - (number(a.at[v]) - mean) * along),
          result.at[v]);
    *reinterpret_cast<Own*>(dx + own.element(i)) = result;
  }
}

}  // namespace rehearse::kernels::device
