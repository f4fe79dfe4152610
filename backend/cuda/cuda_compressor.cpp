#include "backend/cuda/cuda_compressor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/cuda/check.hpp"
#include "backend/cuda/compression_kernels.hpp"
#include "backend/training/sample_data.hpp"

namespace rehearse {
namespace {

OwnedArray floats(Arithmetic& arithmetic, std::size_t elements) {
  return {arithmetic, std::max<std::size_t>(elements, 1), Precision::fp32};
}

Payload whole(const Array& array, Precision type = Precision::fp32) {
  return {array.data, array.bytes(), type};
}

class Fp16 : public DeviceCompressor {
public:
  Fp16(CudaArithmetic& arithmetic, std::size_t elements)
      : arithmetic_(arithmetic), halves_(floats(arithmetic, (elements + 1) / 2)) {}

  void compute(int stream, int part, const Array& gradients) override {
    CHECKED(cudaSetDevice(arithmetic_.device()));
    if (part == 0)
      kernels::to_halves(arithmetic_.stream(stream), gradients, halves_);
    else
      kernels::from_halves(arithmetic_.stream(stream), halves_, gradients);
  }

  Payload collective(int) const override { return whole(halves_, Precision::fp16); }

private:
  CudaArithmetic& arithmetic_;
  const OwnedArray halves_;
};

class TopK : public DeviceCompressor {
public:
  TopK(CudaArithmetic& arithmetic, std::size_t elements, const CompressionTask& task)
      : arithmetic_(arithmetic),
        k_(static_cast<std::size_t>(std::ceil(task.choice.density * static_cast<double>(elements)))),
        rank_(static_cast<std::size_t>(task.rank)),
        ranks_(static_cast<std::size_t>(task.ranks)),
        kept_(floats(arithmetic, elements)),
        gathered_(floats(arithmetic, 2 * k_ * ranks_)),
        scratch_(floats(arithmetic, kernels::kLargestScratch)) {}

  void compute(int stream, int part, const Array& gradients) override {
    CHECKED(cudaSetDevice(arithmetic_.device()));
    const kernels::Stream on = arithmetic_.stream(stream);
    if (part == 0) {
      kernels::add(on, gradients, kept_);
      kernels::take_largest(on, kept_, k_, scratch_, taken_by(rank_));
      return;
    }
    kernels::clear(on, gradients);
    for (std::size_t r = 0; r < ranks_; ++r) kernels::add_at(on, taken_by(r), gradients);
  }

  Payload collective(int) const override { return whole(gathered_); }

private:
  Array taken_by(std::size_t rank) const { return gathered_->part(2 * k_ * rank, 2 * k_); }

  CudaArithmetic& arithmetic_;
  const std::size_t k_, rank_, ranks_;
  const OwnedArray kept_, gathered_, scratch_;
};

class OneBit : public DeviceCompressor {
public:
  OneBit(CudaArithmetic& arithmetic, std::size_t elements, const CompressionTask& task)
      : arithmetic_(arithmetic),
        rank_(static_cast<std::size_t>(task.rank)),
        ranks_(static_cast<std::size_t>(task.ranks)),
        share_((elements + 8 * ranks_ - 1) / (8 * ranks_) * 8),
        block_((sizeof(float) + share_ / 8 + 3) / 4),
        own_(std::min(elements, (rank_ + 1) * share_) - std::min(elements, rank_ * share_)),
        kept_(floats(arithmetic, elements)),
        kept_of_sum_(floats(arithmetic, own_)),
        exchanged_(floats(arithmetic, block_ * ranks_ * ranks_)),
        gathered_(floats(arithmetic, block_ * ranks_)),
        scratch_(floats(arithmetic, kernels::kRootScratch + 1)) {}

  void compute(int stream, int part, const Array& gradients) override {
    CHECKED(cudaSetDevice(arithmetic_.device()));
    const kernels::Stream on = arithmetic_.stream(stream);
    if (part == 0) {
      kernels::add(on, gradients, kept_);
      put(on, kept_, ranks_, exchanged_->part(rank_ * ranks_ * block_, ranks_ * block_));
    } else if (part == 2) {
      const Array sum = kept_of_sum_->part(0, own_);
      const std::size_t first = rank_ * block_;
      kernels::add_signs(on, exchanged_->part(first, exchanged_->elements - first), ranks_, ranks_ * block_,
                         sum);
      put(on, sum, 1, gathered_->part(first, block_));
    } else {
      kernels::take_signs(on, gathered_, share_, block_, gradients);
    }
  }

  Payload collective(int part) const override { return whole(part == 1 ? exchanged_ : gathered_); }

private:
  void put(kernels::Stream on, const Array& numbers, std::size_t shares, const Array& blocks) const {
    const Array scale = scratch_->part(kernels::kRootScratch, 1);
    kernels::root_mean_square(on, numbers, scratch_, scale);
    kernels::put_signs(on, numbers, share_, shares, scale, blocks, block_);
  }

  CudaArithmetic& arithmetic_;
  const std::size_t rank_, ranks_;
  // Numbers of a share; floats of a block; numbers of this rank's share
  const std::size_t share_, block_, own_;
  const OwnedArray kept_, kept_of_sum_, exchanged_, gathered_, scratch_;
};

// Uses the same matrices and factors as the code for processors (training/power_sgd.cpp).
class PowerSgd : public DeviceCompressor {
public:
  PowerSgd(CudaArithmetic& arithmetic, const CompressionTask& task)
      : arithmetic_(arithmetic), rank_(std::lround(task.choice.rank)), ranks_(task.ranks) {
    std::size_t at = 0, p = 0, q = 0;
    for (const DenseLayer& layer : task.layers) {
      const long rows = layer.outputs, columns = layer.inputs;
      const auto elements = static_cast<std::size_t>(rows * columns);
      if ((rows + columns) * rank_ < rows * columns) {
        matrices_.push_back({at, rows, columns, floats(arithmetic, elements), p, q});
        p += static_cast<std::size_t>(rows * rank_);
        q += static_cast<std::size_t>(columns * rank_);
      } else {
        rest_.push_back({at, elements, 0});
      }
      at += elements;
      rest_.push_back({at, static_cast<std::size_t>(rows), 0});
      at += static_cast<std::size_t>(rows);
    }
    for (Uncompressed& rest : rest_) {
      rest.p = p;
      p += rest.elements;
    }
    p_ = floats(arithmetic, p);
    q_ = floats(arithmetic, q);
    std::vector<float> first(q_->elements);
    standard_normal(task.seed, RandomUse::factors, static_cast<std::uint64_t>(task.bucket), first.data(),
                    static_cast<long>(q));
    arithmetic.copy_to_device(0, first.data(), q_);
    arithmetic.settle(0);
  }

  void compute(int stream, int part, const Array& gradients) override {
    CHECKED(cudaSetDevice(arithmetic_.device()));
    if (part == 0)
      project(stream, gradients);
    else if (part == 2 && !matrices_.empty())
      turn(stream);
    else
      restore(stream, gradients);
  }

  Payload collective(int part) const override { return whole(part == 1 ? p_ : q_); }

private:
  struct Factored {
    std::size_t at = 0;  // offset in the bucket
    long rows = 0, columns = 0;
    OwnedArray kept;           // error feedback: the transposed matrix, as gradients are stored
    std::size_t p = 0, q = 0;  // offsets of its factors
  };
  struct Uncompressed {
    std::size_t at = 0, elements = 0, p = 0;
  };

  Array p_of(const Factored& m) const { return p_->part(m.p, static_cast<std::size_t>(m.rows * rank_)); }
  Array q_of(const Factored& m) const { return q_->part(m.q, static_cast<std::size_t>(m.columns * rank_)); }

  // P = M Q.
  void project(int stream, const Array& gradients) {
    for (const Factored& m : matrices_) {
      kernels::add(arithmetic_.stream(stream), gradients.part(m.at, m.kept->elements), m.kept);
      arithmetic_.gemm(stream, {m.rows, rank_, m.columns}, true, false, 1, m.kept, q_of(m), 0, p_of(m));
    }
    for (const Uncompressed& rest : rest_)
      arithmetic_.copy(stream, gradients.part(rest.at, rest.elements), p_->part(rest.p, rest.elements));
  }

  // Q = M^T P, after orthonormalizing the columns of P.
  void turn(int stream) {
    for (const Factored& m : matrices_) {
      kernels::orthonormalize(arithmetic_.stream(stream), p_of(m), static_cast<std::size_t>(rank_));
      arithmetic_.gemm(stream, {m.columns, rank_, m.rows}, false, false, 1, m.kept, p_of(m), 0, q_of(m));
    }
  }

  // M^T = Q P^T.
  void restore(int stream, const Array& gradients) {
    for (const Factored& m : matrices_) {
      const Array restored = gradients.part(m.at, m.kept->elements);
      arithmetic_.gemm(stream, {m.columns, m.rows, rank_}, false, true, 1, q_of(m), p_of(m), 0, restored);
      kernels::add_scaled(arithmetic_.stream(stream), -1 / static_cast<float>(ranks_), restored, m.kept);
    }
    for (const Uncompressed& rest : rest_)
      arithmetic_.copy(stream, p_->part(rest.p, rest.elements), gradients.part(rest.at, rest.elements));
  }

  CudaArithmetic& arithmetic_;
  const long rank_;
  const int ranks_;
  std::vector<Factored> matrices_;
  std::vector<Uncompressed> rest_;
  OwnedArray p_, q_;
};

}  // namespace

std::unique_ptr<DeviceCompressor> cuda_compressor(CudaArithmetic& arithmetic, const CompressionTask& task) {
  std::size_t elements = 0;
  for (const DenseLayer& layer : task.layers)
    elements += static_cast<std::size_t>(layer.inputs + 1) * static_cast<std::size_t>(layer.outputs);
  switch (task.choice.kind) {
    case Compression::none:
      break;
    case Compression::fp16:
      return std::make_unique<Fp16>(arithmetic, elements);
    case Compression::top_k:
      return std::make_unique<TopK>(arithmetic, elements, task);
    case Compression::one_bit:
      return std::make_unique<OneBit>(arithmetic, elements, task);
    case Compression::power_sgd:
      return std::make_unique<PowerSgd>(arithmetic, task);
  }
  return nullptr;
}

}  // namespace rehearse
