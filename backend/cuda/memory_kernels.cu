#include "backend/cuda/memory_kernels.hpp"

#include <algorithm>
#include <type_traits>

#include "backend/cuda/channel_code.hpp"
#include "backend/cuda/launch.hpp"
#include "backend/cuda/row_code.hpp"

namespace rehearse::kernels {
namespace {

using device::Half;
using device::kThreads;
using device::kWarp;

constexpr std::size_t kEnoughBlocks = 1056;  // for sums: eight for each multiprocessor of an H100
constexpr std::size_t kPackBytes = 16;       // largest amount that a thread moves at once
constexpr std::size_t kWideRow = 1024;  // from this many elements, a block instead of a warp handles a row

// Calls `with` with a value of the type and the number of elements in a pack, which divides `width` evenly: a
// feature map of 14 x 14 pixels divides into packs of four, but not of eight.
template <class T, class With>
void packed_as(std::size_t width, With&& with) {
  constexpr int kMost = static_cast<int>(kPackBytes / sizeof(T));
  if (width % kMost == 0) return with(T{}, std::integral_constant<int, kMost>());
  if constexpr (kMost > 4)
    if (width % 4 == 0) return with(T{}, std::integral_constant<int, 4>());
  with(T{}, std::integral_constant<int, 1>());
}
template <class With>
void packed(Precision precision, std::size_t width, With&& with) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return packed_as<float>(width, with);
    case Precision::bf16:
      return packed_as<Bfloat16>(width, with);
    case Precision::fp16:
      return packed_as<Half>(width, with);
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::nvfp4:
      break;
  }
  throw RunError("no kernels for " + std::string(name_of(precision)) + " (allowed: fp32, tf32, bf16, fp16)");
}

// The grid of a row kernel, in which a warp or a block handles a row.
struct RowGrid {
  unsigned blocks;
  dim3 block;
  RowGrid(std::size_t rows, std::size_t width) : block(kThreads) {
    if (width < kWideRow) block = dim3(kWarp, kThreads / kWarp);
    blocks = static_cast<unsigned>((rows + block.y - 1) / block.y);
  }
};

dim3 channel_grid(const Planes& planes, Precision precision) {
  return {static_cast<unsigned>(planes.channels), static_cast<unsigned>(channel_parts(planes, precision))};
}

void add_parts(Stream stream, const Array& parts, const Array& sums) {
  device::add_parts<<<blocks_for(sums.elements), kThreads, 0, stream>>>(
      parts.elements / sums.elements, sums.elements, elements<float>(parts), elements<float>(sums));
  check_launch("add_parts");
}

}  // namespace

std::size_t pack_elements(Precision precision) {
  return kPackBytes / static_cast<std::size_t>(element_bytes(precision));
}

void element_wise(Stream stream, const Array& from, const Array& to, std::size_t array_elements,
                  float factor) {
  packed(to.precision, 0, [&](auto of, auto pack) {
    using Pack = device::Pack<decltype(of), pack>;
    const std::size_t packs = array_elements / pack;
    device::element_wise<<<blocks_for(packs), kThreads, 0, stream>>>(
        packs, from.elements / pack, to.elements / pack, factor, elements<Pack>(from), elements<Pack>(to));
  });
  check_launch("element_wise");
}

void norm_forward(Stream stream, const Array& x, const Array& gain, const Array& bias, const Array& y,
                  const Array& statistics) {
  const std::size_t width = gain.elements, rows = x.elements / width;
  const RowGrid grid(rows, width);
  packed(x.precision, width, [&](auto of, auto pack) {
    using T = decltype(of);
    device::norm_forward<T, pack><<<grid.blocks, grid.block, 0, stream>>>(
        rows, width, elements<T>(x), elements<T>(gain), elements<T>(bias), elements<T>(y),
        elements<float>(statistics));
  });
  check_launch("norm_forward");
}

void norm_backward(Stream stream, const Array& x, const Array& dy, const Array& gain, const Array& statistics,
                   const Array& dx) {
  const std::size_t width = gain.elements, rows = x.elements / width;
  const RowGrid grid(rows, width);
  packed(x.precision, width, [&](auto of, auto pack) {
    using T = decltype(of);
    device::norm_backward<T, pack><<<grid.blocks, grid.block, 0, stream>>>(
        rows, width, elements<T>(x), elements<T>(dy), elements<T>(gain), elements<float>(statistics),
        elements<T>(dx));
  });
  check_launch("norm_backward");
}

void softmax_forward(Stream stream, std::size_t width, float scale, const Array& x, const Array& y) {
  const std::size_t rows = x.elements / width;
  const RowGrid grid(rows, width);
  packed(x.precision, width, [&](auto of, auto pack) {
    using T = decltype(of);
    device::softmax_forward<T, pack>
        <<<grid.blocks, grid.block, 0, stream>>>(rows, width, scale, elements<T>(x), elements<T>(y));
  });
  check_launch("softmax_forward");
}

void softmax_backward(Stream stream, std::size_t width, float scale, const Array& y, const Array& dy,
                      const Array& capped, const Array& dx) {
  const std::size_t rows = y.elements / width;
  const RowGrid grid(rows, width);
  packed(y.precision, width, [&](auto of, auto pack) {
    using T = decltype(of);
    device::softmax_backward<T, pack><<<grid.blocks, grid.block, 0, stream>>>(
        rows, width, scale, elements<T>(y), elements<T>(dy), elements<T>(capped), elements<T>(dx));
  });
  check_launch("softmax_backward");
}

std::size_t column_parts(std::size_t rows, std::size_t width, Precision precision) {
  constexpr std::size_t kFewestRows = 64;  // per part
  const std::size_t most = pack_elements(precision), pack = width % most == 0 ? most : 1;
  const std::size_t across = (width / pack + kWarp - 1) / kWarp;
  return std::clamp<std::size_t>(kEnoughBlocks / across, 1, std::max<std::size_t>(1, rows / kFewestRows));
}

void sum_columns(Stream stream, const Array& x, const Array& statistics, const Array& dy, const Array& parts,
                 const Array& sums) {
  const std::size_t width = x.data == nullptr ? sums.elements : sums.elements / 2;
  const std::size_t rows = dy.elements / width;
  packed(dy.precision, width, [&](auto of, auto pack) {
    using T = decltype(of);
    const auto across = static_cast<unsigned>((width / pack + kWarp - 1) / kWarp);
    const dim3 grid(across, static_cast<unsigned>(parts.elements / sums.elements)),
        block(kWarp, kThreads / kWarp);
    if (x.data == nullptr)
      device::column_parts<T, pack, false><<<grid, block, 0, stream>>>(
          rows, width, nullptr, nullptr, elements<T>(dy), elements<float>(parts));
    else
      device::column_parts<T, pack, true><<<grid, block, 0, stream>>>(
          rows, width, elements<T>(x), elements<float>(statistics), elements<T>(dy), elements<float>(parts));
  });
  check_launch("column_parts");
  add_parts(stream, parts, sums);
}

std::size_t channel_parts(const Planes& planes, Precision precision) {
  constexpr std::size_t kFewestPacks = 2;  // per thread
  const std::size_t of_channel = planes.samples * planes.plane / pack_elements(precision);
  return std::clamp<std::size_t>(kEnoughBlocks / planes.channels, 1,
                                 std::max<std::size_t>(1, of_channel / (kFewestPacks * kThreads)));
}

void sum_channels(Stream stream, const Planes& planes, const Array& x, const Array& dy, const Array& parts,
                  const Array& sums) {
  const dim3 grid = channel_grid(planes, dy.precision);
  packed(dy.precision, planes.plane, [&](auto of, auto pack) {
    using T = decltype(of);
    if (x.data == nullptr)
      device::channel_parts<T, pack, false><<<grid, kThreads, 0, stream>>>(
          planes.samples, planes.channels, planes.plane, nullptr, elements<T>(dy), elements<float>(parts));
    else
      device::channel_parts<T, pack, true>
          <<<grid, kThreads, 0, stream>>>(planes.samples, planes.channels, planes.plane, elements<T>(x),
                                          elements<T>(dy), elements<float>(parts));
  });
  check_launch("channel_parts");
  add_parts(stream, parts, sums);
}

void batch_norm_forward(Stream stream, const Planes& planes, const Array& sums, const Array& x,
                        const Array& gain, const Array& bias, const Array& y, const Array& statistics) {
  packed(x.precision, planes.plane, [&](auto of, auto pack) {
    using T = decltype(of);
    device::batch_norm_forward<T, pack><<<channel_grid(planes, x.precision), kThreads, 0, stream>>>(
        planes.samples, planes.channels, planes.plane, elements<float>(sums), elements<T>(x),
        elements<float>(gain), elements<float>(bias), elements<T>(y), elements<float>(statistics));
  });
  check_launch("batch_norm_forward");
}

void batch_norm_backward(Stream stream, const Planes& planes, const Array& sums, const Array& statistics,
                         const Array& gain, const Array& x, const Array& dy, const Array& dx) {
  packed(x.precision, planes.plane, [&](auto of, auto pack) {
    using T = decltype(of);
    device::batch_norm_backward<T, pack><<<channel_grid(planes, x.precision), kThreads, 0, stream>>>(
        planes.samples, planes.channels, planes.plane, elements<float>(sums), elements<float>(statistics),
        elements<float>(gain), elements<T>(x), elements<T>(dy), elements<T>(dx));
  });
  check_launch("batch_norm_backward");
}

}  // namespace rehearse::kernels
