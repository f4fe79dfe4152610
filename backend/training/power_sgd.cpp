// Uses plain loops, because products of matrices with factors of few columns are memory-bound.
#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/training/gradient_compression.hpp"
#include "backend/training/sample_data.hpp"

namespace rehearse {
namespace {

// A matrix that is sent as two factors. A layer's gradient is stored as M^T, [inputs, outputs], where M,
// [outputs, inputs], is the paper's matrix.
struct Factored {
  std::size_t at = 0;  // offset in the bucket
  long rows = 0, columns = 0;
  std::vector<float> kept;   // error feedback, in the layout of the gradient
  std::size_t p = 0, q = 0;  // offsets of its factors, [rows, rank] and [columns, rank]
};
struct Uncompressed {
  std::size_t at = 0, elements = 0, p = 0;
};

class PowerSgd : public GradientCompressor {
public:
  PowerSgd(const std::vector<DenseLayer>& layers, double rank, int ranks, std::uint64_t seed, int bucket)
      : rank_(std::lround(rank)), ranks_(ranks) {
    std::size_t at = 0, p = 0, q = 0;
    const auto leave = [&](long elements) {
      rest_.push_back({at, static_cast<std::size_t>(elements), 0});
      at += static_cast<std::size_t>(elements);
    };
    for (const DenseLayer& layer : layers) {
      const long rows = layer.outputs, columns = layer.inputs;
      if ((rows + columns) * rank_ < rows * columns) {
        matrices_.push_back(
            {at, rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)), p, q});
        at += static_cast<std::size_t>(rows * columns);
        p += static_cast<std::size_t>(rows * rank_);
        q += static_cast<std::size_t>(columns * rank_);
      } else {
        leave(rows * columns);
      }
      leave(rows);
    }
    for (Uncompressed& rest : rest_) {
      rest.p = p;
      p += rest.elements;
    }
    p_.resize(p);
    q_.resize(q);
    // All ranks draw the same factors.
    standard_normal(seed, RandomUse::factors, static_cast<std::uint64_t>(bucket), q_.data(),
                    static_cast<long>(q));
  }

  // The steps are: project, all-reduce P; if any matrix is compressed, orthogonalize, all-reduce Q; restore.
  void compute(int part, std::span<float> gradients) override {
    if (part == 0)
      project(gradients);
    else if (part == 2 && !matrices_.empty())
      turn();
    else
      restore(gradients);
  }

  Payload collective(int part) override {
    std::vector<float>& buffer = part == 1 ? p_ : q_;
    return {reinterpret_cast<std::byte*>(buffer.data()), buffer.size() * sizeof(float)};
  }

private:
  // P = M Q for the gradient plus the stored error; uncompressed gradients are sent along with P.
  void project(std::span<const float> gradients) {
    for (Factored& m : matrices_) {
      for (std::size_t i = 0; i < m.kept.size(); ++i) m.kept[i] += gradients[m.at + i];
      std::fill_n(&p_[m.p], m.rows * rank_, 0.0f);
      for (long c = 0; c < m.columns; ++c)
        for (long r = 0; r < m.rows; ++r)
          for (long k = 0; k < rank_; ++k)
            p_[m.p + r * rank_ + k] += m.kept[c * m.rows + r] * q_[m.q + c * rank_ + k];
    }
    for (const Uncompressed& rest : rest_)
      std::copy_n(gradients.begin() + static_cast<std::ptrdiff_t>(rest.at), rest.elements, &p_[rest.p]);
  }

  // Q = M^T P, after orthonormalizing the columns of P.
  void turn() {
    for (const Factored& m : matrices_) {
      orthonormalize(&p_[m.p], m.rows);
      for (long c = 0; c < m.columns; ++c)
        for (long k = 0; k < rank_; ++k) {
          float sum = 0;
          for (long r = 0; r < m.rows; ++r) sum += m.kept[c * m.rows + r] * p_[m.p + r * rank_ + k];
          q_[m.q + c * rank_ + k] = sum;
        }
    }
  }

  // Gram-Schmidt process: subtracts each column's share from the columns after it. Columns of zeros stay
  // zero.
  void orthonormalize(float* p, long rows) const {
    for (long k = 0; k < rank_; ++k) {
      double squares = 0;
      for (long r = 0; r < rows; ++r)
        squares += static_cast<double>(p[r * rank_ + k]) * static_cast<double>(p[r * rank_ + k]);
      const double norm = std::sqrt(squares);
      for (long r = 0; r < rows && norm > 0; ++r)
        p[r * rank_ + k] = static_cast<float>(static_cast<double>(p[r * rank_ + k]) / norm);
      for (long j = k + 1; j < rank_; ++j) {
        double along = 0;
        for (long r = 0; r < rows; ++r)
          along += static_cast<double>(p[r * rank_ + k]) * static_cast<double>(p[r * rank_ + j]);
        for (long r = 0; r < rows; ++r)
          p[r * rank_ + j] -= static_cast<float>(along * static_cast<double>(p[r * rank_ + k]));
      }
    }
  }

  // P Q^T is the mean over all ranks, so 1 / ranks of it counts as sent by this rank; the rest stays as its
  // error.
  void restore(std::span<float> gradients) {
    const float share = 1.0f / static_cast<float>(ranks_);
    for (Factored& m : matrices_)
      for (long c = 0; c < m.columns; ++c)
        for (long r = 0; r < m.rows; ++r) {
          float sum = 0;
          for (long k = 0; k < rank_; ++k) sum += p_[m.p + r * rank_ + k] * q_[m.q + c * rank_ + k];
          const auto i = static_cast<std::size_t>(c * m.rows + r);
          gradients[m.at + i] = sum;
          m.kept[i] -= share * sum;
        }
    for (const Uncompressed& rest : rest_)
      std::copy_n(&p_[rest.p], rest.elements, gradients.begin() + static_cast<std::ptrdiff_t>(rest.at));
  }

  const long rank_;
  const int ranks_;
  std::vector<Factored> matrices_;
  std::vector<Uncompressed> rest_;
  std::vector<float> p_, q_;
};

}  // namespace

std::unique_ptr<GradientCompressor> power_sgd_compressor(const std::vector<DenseLayer>& layers, double rank,
                                                         int ranks, std::uint64_t seed, int bucket) {
  return std::make_unique<PowerSgd>(layers, rank, ranks, seed, bucket);
}

}  // namespace rehearse
