// Stores the batch of several data-parallel ranks on one rank, which makes the inputs of all of them and
// takes the loss of all their outputs.
#pragma once

#include <memory>
#include <vector>

#include "backend/loading/sample_source.hpp"
#include "backend/training/equal_arrays.hpp"
#include "backend/training/workload_parts.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Every array has a slot for each data-parallel rank, in order of ranks; samples are numbered as those of
// data-parallel ranks are.
class GatheredBatch {
public:
  // The scenario's model must be a perceptron. `steps` is the number of steps whose inputs, labels and losses
  // are stored. All arrays are fp32.
  GatheredBatch(const Scenario& scenario, std::shared_ptr<const SampleSource> samples, Arithmetic& arithmetic,
                long steps);
  static double bytes_of_step(const Scenario& scenario);

  // Generates the inputs and labels of step `before` + `step` of the training, and stores them as those of
  // `step`.
  void load(int stream, long step, long before);
  Array inputs(long step, int microbatch) const { return inputs_[slot(step, microbatch)]; }
  const Array& outputs() const { return outputs_; }  // of the current micro-batch
  const Array& gradients() const { return gradients_; }
  Array first_slot(const Array& all) const { return all.part(0, all.elements / ranks_); }
  // Computes the losses of a micro-batch's outputs and the gradients of the outputs.
  void take_loss(int stream, long step, int microbatch);
  double loss(long step) const;  // the sum over the samples of a step; waits for stream 0

private:
  std::size_t slot(long step, int microbatch) const {
    return static_cast<std::size_t>(step % steps_ * microbatches_ + microbatch);
  }
  Arithmetic& arithmetic_;
  const std::size_t ranks_;
  const long steps_, microbatches_;
  const std::size_t samples_;  // of a rank in a micro-batch
  const std::size_t features_;
  const std::shared_ptr<const SampleSource> data_;
  OwnedArray outputs_, gradients_;
  EqualArrays inputs_, labels_, losses_;  // by stored step and micro-batch
};

}  // namespace rehearse
