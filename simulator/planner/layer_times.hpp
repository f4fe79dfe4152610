// What one micro-batch costs each layer of a model when its work is split in one way: the ground on which
// plans are bounded.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "simulator/planner/collective_times.hpp"
#include "simulator/scenario/scenario.hpp"

namespace rehearse {

// Of one layer on one device, for one micro-batch. Seconds are those of kernels and of those collectives that
// hold up the compute stream; nothing waits, and nothing is slowed down: lower bounds of a simulation.
struct LayerTimes {
  double forward_s = 0, recompute_s = 0;
  double backward_s = 0;                               // whole, without recomputation
  double backward_input_s = 0, backward_weight_s = 0;  // in two parts
  double kernels_s = 0;                                // of all passes, without collectives
  double overlapped_s = 0;                             // of collectives that run beside computing, all passes
  double issue_forward_s = 0, issue_backward_s = 0;    // the process' time to issue its ops
  double parameters = 0, expert_parameters = 0;        // elements; experts that are placed apart
  double saved_bytes = 0;                              // kept from the forward to the backward pass
  double boundary_bytes = 0;                           // sent if the next layer is on another stage; last: 0
};

// Equal kernels of a model, and how long they all take for one micro-batch.
struct KernelShare {
  Kernel one;
  double seconds = 0;
};

// The layers of a scenario with one micro-batch and no pipeline.
struct ModelTimes {
  std::vector<LayerTimes> layers;
  double tied_parameters = 0;        // of a table that the first and the last of several stages both keep
  std::vector<KernelShare> kernels;  // of all layers
};

// Remembers kernels' times, so that equal layers are timed once. `cluster` must outlive it.
class LayerTimer {
public:
  LayerTimer(const Cluster& cluster, const EngineOptions& options)
      : cluster_(cluster), collectives_(cluster, options) {}

  // `scenario` must be one without a pipeline. InputError if its model cannot be split so.
  ModelTimes times(const Scenario& scenario);
  CollectiveTimes& collectives() { return collectives_; }

private:
  double kernels_s(const std::vector<Kernel>& kernels, Precision precision);

  using KernelKey = std::tuple<int, double, double, double, double, double, double, double>;
  struct Known {
    Kernel one;
    double one_s = 0, model_s = 0;  // model_s: of all of them in the model that is being timed
  };
  const Cluster& cluster_;
  CollectiveTimes collectives_;
  std::map<KernelKey, Known> known_;
};

}  // namespace rehearse
