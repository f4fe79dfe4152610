#include "backend/cuda/memory_replay.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "backend/cuda/memory_kernels.hpp"
#include "backend/cuda/pieces.hpp"

namespace rehearse {
namespace {

std::size_t whole(double number) {
  return static_cast<std::size_t>(std::max(1LL, std::llround(number)));
}

// A kernel over rows, or over planes, where each channel of each sample is a row.
struct RowKernel {
  MemoryForm form;
  bool soft_capped = false;
  Precision precision;
  std::size_t width = 0, channels = 0;  // channels: 0 if rows are not planes
};

// Runs the kernel on `count` rows, or on `count` samples of planes. If `pieces` has no memory, only counts
// the bytes that the kernel needs.
void issue(kernels::Stream stream, const RowKernel& kernel, std::size_t count, Pieces& pieces) {
  constexpr float kScale = 0.125f;  // of attention scores
  const std::size_t width = kernel.width, rows = count * std::max<std::size_t>(kernel.channels, 1);
  const kernels::Planes planes{count, kernel.channels, width};
  const Array none{};
  const bool there = pieces.are_there();
  const auto full = [&] { return pieces.take(rows * width, kernel.precision); };
  const auto row = [&] { return pieces.take(width, kernel.precision); };
  const auto floats = [&](std::size_t elements) { return pieces.take(elements, Precision::fp32); };
  switch (kernel.form) {
    case MemoryForm::element_wise:
    case MemoryForm::activation_forward:
    case MemoryForm::activation_backward:
    case MemoryForm::adam_update:
      return;
    case MemoryForm::norm_forward: {
      const Array gain = row(), bias = row(), x = full(), y = full(), statistics = floats(2 * rows);
      if (there) kernels::norm_forward(stream, x, gain, bias, y, statistics);
      return;
    }
    case MemoryForm::norm_backward: {
      const Array gain = row(), statistics = floats(2 * rows), x = full(), dy = full(), dx = full();
      if (there) kernels::norm_backward(stream, x, dy, gain, statistics, dx);
      return;
    }
    case MemoryForm::softmax_forward: {
      const Array x = full(), y = full();
      if (there) kernels::softmax_forward(stream, width, kScale, x, y);
      return;
    }
    case MemoryForm::softmax_backward: {
      const Array y = full(), dy = full(), capped = kernel.soft_capped ? full() : none, dx = full();
      if (there) kernels::softmax_backward(stream, width, kScale, y, dy, capped, dx);
      return;
    }
    case MemoryForm::norm_parameters:
    case MemoryForm::column_sums: {
      const bool norm = kernel.form == MemoryForm::norm_parameters;
      const std::size_t results = norm ? 2 * width : width;
      const Array statistics = norm ? floats(2 * rows) : none, x = norm ? full() : none, dy = full(),
                  parts = floats(results * kernels::column_parts(rows, width, kernel.precision)),
                  sums = floats(results);
      if (there) kernels::sum_columns(stream, x, statistics, dy, parts, sums);
      return;
    }
    case MemoryForm::channel_sums:
    case MemoryForm::batch_norm_sums: {
      const bool norm = kernel.form == MemoryForm::batch_norm_sums;
      const std::size_t results = (norm ? 2 : 1) * kernel.channels;
      const Array x = norm ? full() : none, dy = full(),
                  parts = floats(results * kernels::channel_parts(planes, kernel.precision)),
                  sums = floats(results);
      if (there) kernels::sum_channels(stream, planes, x, dy, parts, sums);
      return;
    }
    case MemoryForm::batch_norm_forward: {
      const std::size_t results = 2 * kernel.channels;
      const Array gain = floats(kernel.channels), bias = floats(kernel.channels), x = full(),
                  parts = floats(results * kernels::channel_parts(planes, kernel.precision)),
                  sums = floats(results), y = full(), statistics = floats(results);
      if (!there) return;
      kernels::sum_channels(stream, planes, x, x, parts, sums);
      kernels::batch_norm_forward(stream, planes, sums, x, gain, bias, y, statistics);
      return;
    }
    case MemoryForm::batch_norm_backward: {
      const Array gain = floats(kernel.channels), sums = floats(2 * kernel.channels),
                  statistics = floats(2 * kernel.channels), x = full(), dy = full(), dx = full();
      if (there) kernels::batch_norm_backward(stream, planes, sums, statistics, gain, x, dy, dx);
      return;
    }
  }
}

std::optional<RowKernel> row_kernel(const Kernel& kernel, Precision precision) {
  if (!has_rows(kernel.form) || kernel.width < 1 || kernel.bytes <= 0) return {};
  RowKernel rows{kernel.form, kernel.reads > 2, precision, whole(kernel.width),
                 static_cast<std::size_t>(kernel.channels)};
  const double element = static_cast<double>(kernel.element);
  if (element != element_bytes(precision)) rows.precision = Precision::fp32;
  if (element != element_bytes(rows.precision) || casts_operands(rows.precision)) return {};
  return rows;
}

Replayed replay_rows(kernels::Stream stream, const Kernel& kernel, const RowKernel& rows, Precision filled,
                     std::size_t most_bytes, const GiveMemory& memory) {
  const std::size_t of_one = std::max<std::size_t>(rows.channels, 1);
  const std::size_t all = whole(kernel.rows() / static_cast<double>(of_one));
  std::size_t most = all, bytes = 0;
  for (;; most = (most + 1) / 2) {
    Pieces counted(nullptr);
    issue(stream, rows, most, counted);
    bytes = counted.bytes();
    if (bytes <= most_bytes || most == 1) break;
  }
  std::byte* const begin = memory(bytes, filled);
  Replayed done;
  for (std::size_t times = whole(kernel.count); times > 0; --times)
    for (std::size_t first = 0; first < all; first += most) {
      Pieces pieces(begin);
      const std::size_t count = std::min(most, all - first);
      issue(stream, rows, count, pieces);
      done.bytes += static_cast<double>(count * of_one * rows.width) *
                    static_cast<double>((kernel.reads + kernel.writes) * kernel.element);
    }
  return done;
}

// Replays an element-wise kernel in complete packs, with as many equal launches as the memory limit requires.
Replayed replay_elements(kernels::Stream stream, const Kernel& kernel, Precision any, std::size_t most_bytes,
                         const GiveMemory& memory) {
  const std::size_t pack = kernels::pack_elements(any);
  const double pack_bytes = element_bytes(any) * static_cast<double>(pack);
  const auto reads = static_cast<double>(kernel.reads), writes = static_cast<double>(kernel.writes);
  const double launches = std::max(1.0, std::ceil(kernel.bytes / static_cast<double>(most_bytes)));
  const double packs = kernel.bytes / launches / pack_bytes / (reads + writes);  // of one array
  const std::size_t read = whole(packs * reads) * pack, written = whole(packs * writes) * pack;
  Pieces counted(nullptr);
  (void)counted.take(read, any);
  (void)counted.take(written, any);
  Pieces pieces(memory(counted.bytes(), any));
  const Array from = pieces.take(read, any), to = pieces.take(written, any);
  Replayed done;
  for (double launch = 0; launch < launches * static_cast<double>(whole(kernel.count)); ++launch) {
    kernels::element_wise(stream, from, to, whole(packs) * pack,
                          1 / static_cast<float>(std::max(1.0, std::ceil(reads))));
    done.bytes += static_cast<double>(from.bytes() + to.bytes());
  }
  return done;
}

}  // namespace

Replayed replay_memory(kernels::Stream stream, const Kernel& kernel, Precision precision, Precision any,
                       std::size_t most_bytes, const GiveMemory& memory) {
  if (const auto rows = row_kernel(kernel, precision))
    return replay_rows(stream, kernel, *rows, precision, most_bytes, memory);
  return kernel.bytes > 0 ? replay_elements(stream, kernel, any, most_bytes, memory) : Replayed{};
}

}  // namespace rehearse
