#include "backend/training/gradient_compression.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backend/runtime/combine_numbers.hpp"

namespace rehearse {
namespace {

class Fp16 : public GradientCompressor {
public:
  explicit Fp16(std::size_t elements) : halves_(elements + elements % 2, 0) {}

  void compute(int part, std::span<float> gradients) override {
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (part == 0)
        halves_[i] = half_from_float(gradients[i]);
      else
        gradients[i] = float_from_half(halves_[i]);
  }

  Payload collective(int) override {
    return {reinterpret_cast<std::byte*>(halves_.data()), halves_.size() * sizeof(std::uint16_t),
            Precision::fp16};
  }

private:
  std::vector<std::uint16_t> halves_;
};

// Every rank's part of the gathered buffer has k values and then k indices.
class TopK : public GradientCompressor {
public:
  TopK(std::size_t elements, double density, int rank, int ranks)
      : k_(static_cast<std::size_t>(std::ceil(density * static_cast<double>(elements)))),
        rank_(static_cast<std::size_t>(rank)),
        ranks_(static_cast<std::size_t>(ranks)),
        kept_(elements, 0.0f),
        order_(elements),
        gathered_(2 * k_ * ranks_) {}

  void compute(int part, std::span<float> gradients) override {
    if (part == 0)
      select(gradients);
    else
      add_up(gradients);
  }

  Payload collective(int) override {
    return {reinterpret_cast<std::byte*>(gathered_.data()), gathered_.size() * sizeof(float)};
  }

private:
  void select(std::span<const float> gradients) {
    for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i] += gradients[i];
    std::iota(order_.begin(), order_.end(), 0u);
    const auto end = order_.begin() + static_cast<std::ptrdiff_t>(k_);
    const auto larger = [&](std::uint32_t a, std::uint32_t b) {
      const float left = std::abs(kept_[a]), right = std::abs(kept_[b]);
      return left > right || (left == right && a < b);
    };
    if (end != order_.end()) std::nth_element(order_.begin(), end, order_.end(), larger);
    std::sort(order_.begin(), end);
    float* const values = &gathered_[2 * k_ * rank_];
    for (std::size_t i = 0; i < k_; ++i) values[i] = std::exchange(kept_[order_[i]], 0.0f);
    std::memcpy(values + k_, order_.data(), k_ * sizeof(std::uint32_t));
  }

  void add_up(std::span<float> gradients) const {
    std::fill(gradients.begin(), gradients.end(), 0.0f);
    std::vector<std::uint32_t> indices(k_);
    for (std::size_t r = 0; r < ranks_; ++r) {
      const float* const values = &gathered_[2 * k_ * r];
      std::memcpy(indices.data(), values + k_, k_ * sizeof(std::uint32_t));
      for (std::size_t i = 0; i < k_; ++i) gradients[indices[i]] += values[i];
    }
  }

  const std::size_t k_, rank_, ranks_;
  std::vector<float> kept_;
  std::vector<std::uint32_t> order_;
  std::vector<float> gathered_;
};

// Rank r sums share r: elements [8 b r, 8 b (r + 1)), where b bytes hold the signs of a share. A block of a
// message is the scale followed by the signs.
class OneBit : public GradientCompressor {
public:
  OneBit(std::size_t elements, int rank, int ranks)
      : rank_(static_cast<std::size_t>(rank)),
        ranks_(static_cast<std::size_t>(ranks)),
        share_((elements + 8 * ranks_ - 1) / (8 * ranks_) * 8),
        block_((sizeof(float) + share_ / 8 + 3) / 4),
        kept_(elements, 0.0f),
        kept_of_sum_(size_of(rank_), 0.0f),
        exchanged_(block_ * ranks_ * ranks_, 0.0f),
        gathered_(block_ * ranks_, 0.0f) {}

  void compute(int part, std::span<float> gradients) override {
    if (part == 0) pack(gradients);
    if (part == 2) add_up();
    if (part == 4)
      for (std::size_t r = 0; r < ranks_; ++r)
        unpack(&gathered_[block_ * r], gradients.subspan(begin_of(r), size_of(r)), false);
  }

  Payload collective(int part) override {
    std::vector<float>& buffer = part == 1 ? exchanged_ : gathered_;
    return {reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof(float)};
  }

private:
  std::size_t begin_of(std::size_t share) const { return std::min(kept_.size(), share * share_); }
  std::size_t size_of(std::size_t share) const { return begin_of(share + 1) - begin_of(share); }

  void pack(std::span<const float> gradients) {
    for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i] += gradients[i];
    const float scale = scale_of(kept_);
    for (std::size_t r = 0; r < ranks_; ++r)
      put(scale, std::span(kept_).subspan(begin_of(r), size_of(r)),
          &exchanged_[(rank_ * ranks_ + r) * block_]);
  }

  void add_up() {
    std::vector<float> sum(kept_of_sum_.size(), 0.0f);
    for (std::size_t r = 0; r < ranks_; ++r) unpack(&exchanged_[(r * ranks_ + rank_) * block_], sum, true);
    for (std::size_t i = 0; i < sum.size(); ++i) kept_of_sum_[i] += sum[i];
    put(scale_of(kept_of_sum_), kept_of_sum_, &gathered_[block_ * rank_]);
  }

  // Returns the scale with which the signs have the same norm as the numbers, as in DeepSpeed
  // (deepspeed/runtime/comm/nccl.py).
  static float scale_of(std::span<const float> numbers) {
    double squares = 0;
    for (const float x : numbers) squares += static_cast<double>(x) * static_cast<double>(x);
    return numbers.empty() ? 0 : static_cast<float>(std::sqrt(squares / static_cast<double>(numbers.size())));
  }

  // Writes the scale and the signs to `block` and leaves the error of that representation in `numbers`. The
  // sign of 0 is +.
  static void put(float scale, std::span<float> numbers, float* block) {
    std::memcpy(block, &scale, sizeof scale);
    auto* const bytes = reinterpret_cast<unsigned char*>(block + 1);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const unsigned bit = numbers[i] < 0 ? 1u : 0u;
      const unsigned before = i % 8 == 0 ? 0u : bytes[i / 8];
      bytes[i / 8] = static_cast<unsigned char>(before | (bit << (i % 8)));
      numbers[i] -= bit != 0 ? -scale : scale;
    }
  }

  static void unpack(const float* block, std::span<float> to, bool add) {
    float scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    const auto* const bytes = reinterpret_cast<const unsigned char*>(block + 1);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const float value = ((bytes[i / 8] >> (i % 8)) & 1u) != 0 ? -scale : scale;
      to[i] = add ? to[i] + value : value;
    }
  }

  const std::size_t rank_, ranks_;
  const std::size_t share_, block_;  // elements of a share; 4-byte words of a block
  std::vector<float> kept_, kept_of_sum_;
  std::vector<float> exchanged_, gathered_;  // a block for each pair of ranks; a block for each rank
};

}  // namespace

std::unique_ptr<GradientCompressor> gradient_compressor(const CompressionChoice& choice,
                                                        const std::vector<DenseLayer>& layers, int rank,
                                                        int ranks, std::uint64_t seed, int bucket) {
  std::size_t elements = 0;
  for (const DenseLayer& layer : layers)
    elements += static_cast<std::size_t>(layer.inputs + 1) * static_cast<std::size_t>(layer.outputs);
  switch (choice.kind) {
    case Compression::none:
      break;
    case Compression::fp16:
      return std::make_unique<Fp16>(elements);
    case Compression::top_k:
      return std::make_unique<TopK>(elements, choice.density, rank, ranks);
    case Compression::one_bit:
      return std::make_unique<OneBit>(elements, rank, ranks);
    case Compression::power_sgd:
      return power_sgd_compressor(layers, choice.rank, ranks, seed, bucket);
  }
  return nullptr;
}

}  // namespace rehearse
