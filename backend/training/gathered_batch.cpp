#include "backend/training/gathered_batch.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace rehearse {
namespace {

const MultiLayerPerceptron& shape_of(const Scenario& scenario) {
  return std::get<MultiLayerPerceptron>(scenario.model.shape);
}

std::size_t whole(double number) {
  return static_cast<std::size_t>(std::lround(number));
}

}  // namespace

GatheredBatch::GatheredBatch(const Scenario& scenario, std::shared_ptr<const SampleSource> samples,
                             Arithmetic& arithmetic, long steps)
    : arithmetic_(arithmetic),
      ranks_(static_cast<std::size_t>(scenario.strategy.data)),
      steps_(steps),
      microbatches_(scenario.microbatches),
      samples_(whole(scenario.training.micro_batch)),
      features_(whole(shape_of(scenario).widths.front())),
      data_(std::move(samples)) {
  const std::size_t all = ranks_ * samples_, outputs = all * whole(shape_of(scenario).widths.back());
  outputs_ = OwnedArray(arithmetic, outputs, Precision::fp32);
  gradients_ = OwnedArray(arithmetic, outputs, Precision::fp32);
  const auto of_steps = [&](std::size_t elements) {
    return EqualArrays(arithmetic, static_cast<std::size_t>(steps * microbatches_), elements,
                       Precision::fp32);
  };
  inputs_ = of_steps(all * features_);
  labels_ = of_steps(all);
  losses_ = of_steps(all);
}

double GatheredBatch::bytes_of_step(const Scenario& scenario) {
  const std::size_t samples =
      static_cast<std::size_t>(scenario.strategy.data) * whole(scenario.training.micro_batch);
  const std::size_t elements = EqualArrays::stride(samples * whole(shape_of(scenario).widths.front())) +
                               2 * EqualArrays::stride(samples);
  return static_cast<double>(kElementBytes * elements) * scenario.microbatches;
}

void GatheredBatch::load(int stream, long step, long before) {
  std::vector<float> inputs(ranks_ * samples_ * features_), labels(ranks_ * samples_);
  for (long microbatch = 0; microbatch < microbatches_; ++microbatch) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::uint64_t batch = static_cast<std::uint64_t>(before + step) * ranks_ + i / samples_;
      const std::uint64_t sample =
          (batch * static_cast<std::uint64_t>(microbatches_) + static_cast<std::uint64_t>(microbatch)) *
              samples_ +
          i % samples_;
      data_->read(sample, 1, features_, &inputs[i * features_]);
      data_->read(sample, 0, 1, &labels[i]);
    }
    const std::size_t at = slot(step, static_cast<int>(microbatch));
    arithmetic_.copy_to_device(stream, inputs.data(), inputs_[at]);
    arithmetic_.copy_to_device(stream, labels.data(), labels_[at]);
  }
}

void GatheredBatch::take_loss(int stream, long step, int microbatch) {
  const double batch = static_cast<double>(ranks_ * samples_) * static_cast<double>(microbatches_);
  const std::size_t at = slot(step, microbatch);
  arithmetic_.softmax_cross_entropy(stream, outputs_, labels_[at], static_cast<float>(1 / batch), losses_[at],
                                    gradients_);
}

double GatheredBatch::loss(long step) const {
  double sum = 0;
  std::vector<float> losses(ranks_ * samples_);
  for (int k = 0; k < microbatches_; ++k) {
    arithmetic_.copy_to_host(0, losses_[slot(step, k)], losses.data());
    sum = std::accumulate(losses.begin(), losses.end(), sum);
  }
  return sum;
}

}  // namespace rehearse
