// Computes what one micro-batch costs each layer of a model when the model's work is split in one particular
// way. Bounds of plans are based on it.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "simulator/planner/collective_times.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Times of one layer on one device for one micro-batch. They include kernels and those collectives that hold
// up the compute stream. Nothing waits and nothing is slowed down, so they are lower bounds of a simulation.
struct LayerTimes {
  double forward_s = 0, recompute_s = 0;
  double backward_s = 0;                               // in one part, without recomputation
  double backward_input_s = 0, backward_weight_s = 0;  // the same in two parts
  double kernels_s = 0;                                // all passes, without collectives
  double overlapped_s = 0;                             // collectives that run beside computation, all passes
  double issue_forward_s = 0, issue_backward_s = 0;    // time of the process to issue the ops
  double parameters = 0, expert_parameters = 0;        // elements; of these, in experts that are placed apart
  double saved_bytes = 0;                              // retained from the forward to the backward pass
  double boundary_bytes = 0;  // sent if the next layer is on another stage; last layer: 0
};

// Identical kernels of a model, and how long all of them take for one micro-batch.
struct KernelShare {
  Kernel one;
  double seconds = 0;
};

// The times of a scenario's layers with one micro-batch and no pipeline.
struct ModelTimes {
  std::vector<LayerTimes> layers;
  double tied_parameters = 0;        // of a table that the first and the last of several stages both hold
  std::vector<KernelShare> kernels;  // kernels of all layers
};

// Caches the times of kernels, so that identical layers are timed once. `cluster` must outlive the object.
class LayerTimer {
public:
  LayerTimer(const Cluster& cluster, const EngineOptions& options)
      : cluster_(cluster), collectives_(cluster, options) {}

  // Times a scenario, which must not have a pipeline. Throws InputError if its model cannot be split in this
  // way.
  ModelTimes times(const Scenario& scenario);
  CollectiveTimes& collectives() { return collectives_; }

private:
  double kernels_s(const std::vector<Kernel>& kernels, Precision precision);

  using KernelKey = std::tuple<int, double, double, double, double, double, double, double>;
  struct Known {
    Kernel one;
    double one_s = 0, model_s = 0;  // model_s: of all executions in the model that is being timed
  };
  const Cluster& cluster_;
  CollectiveTimes collectives_;
  std::map<KernelKey, Known> known_;
};

}  // namespace rehearse
