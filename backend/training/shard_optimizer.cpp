#include "backend/training/shard_optimizer.hpp"

namespace rehearse {

ShardOptimizer::ShardOptimizer(Arithmetic& arithmetic, int stream, const std::vector<float>& initial,
                               const OptimizerSettings& optimizer, Precision precision)
    : arithmetic_(arithmetic), optimizer_(optimizer), weights_(arithmetic, initial.size(), precision) {
  const auto state = [&] { return OwnedArray(arithmetic, initial.size(), Precision::fp32); };
  if (element_bytes(precision) < 4) {
    master_ = state();
    arithmetic_.copy_to_device(stream, initial.data(), master_);
  }
  if (has_momentum(optimizer.kind)) momentum_ = state();
  if (has_second_moment(optimizer.kind)) second_moment_ = state();
  arithmetic_.copy_to_device(stream, initial.data(), weights_);
}

void ShardOptimizer::apply(int stream, const Array& gradient) {
  const Array& weights = weights_;
  const Array& master = master_;
  arithmetic_.update(stream, optimizer_, ++steps_,
                     {weights, master.data ? master : weights, gradient, momentum_, second_moment_});
}

}  // namespace rehearse
