// Simulates one plan and converts its figures into a line of text, which other processes and later runs read.
#pragma once

#include <optional>
#include <string>

#include "simulator/commands/plan/plan_question.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/costs/reserved.hpp"

namespace rehearse {

struct PlanFigures {
  enum class Status { ok, too_large, refused, failed } status = Status::failed;
  std::string error;  // of a refused or failed plan
  double step_time_s = 0, samples_per_s = 0, tokens_per_s = 0, mfu = 0;
  // Parts of a device's step, averaged over all devices.
  double compute_s = 0, communication_s = 0, bubble_s = 0, other_s = 0;
  double memory_bytes = 0;    // tensors, on the fullest device
  double reserved_bytes = 0;  // in addition: estimate for CUDA, NCCL and cuBLAS
  std::string fullest;        // name of the fullest device: "stage 1"
  // The step without the time that gradients and updates take on its critical path: no plan that differs only
  // in these is faster.
  double without_gradients_s = 0;
  // 0: the step is exact; otherwise the number of micro-batches from which it was extrapolated.
  int simulated_microbatches = 0;
  std::string result;  // output of `rehearse simulate --format json`, if the step is exact
};
inline constexpr std::array<std::string_view, 4> kPlanStatusNames = {"ok", "too large", "refused", "failed"};

// The memory of a device that a plan may use: for its tensors, and for the reserve beside them.
struct MemoryLimit {
  double capacity_bytes = 0;            // 0: no limit
  // nullopt: estimate for CUDA, NCCL and cuBLAS, and a margin for what the allocator cannot use.
  std::optional<double> reserve_bytes;
  double needed(const PlanFigures& figures) const {
    return figures.memory_bytes +
           reserve_bytes.value_or(figures.reserved_bytes + kMemoryMargin * capacity_bytes);
  }
  bool fits(const PlanFigures& figures) const {
    return capacity_bytes <= 0 || needed(figures) <= capacity_bytes;
  }
};

// Returns the figures of a predicted plan.
PlanFigures figures_of(const Prediction& prediction);

// Limits of what is simulated. A plan of more than `most_ops` ops whose rounds of micro-batches are not all
// alike is extrapolated from fewer micro-batches where steps grow evenly (RoundsEffort), and from the fewest
// if it is far from its bound.
struct SimulationEffort {
  double most_ops = 0;  // 0: no limit, every step is exact
  double bound_s = 0;   // 0: no plan is far from it
};

// Simulates a plan, unless it is too large for a device.
PlanFigures simulate_plan(const PlanQuestion& question, const PlanChoice& plan, const MemoryLimit& memory,
                          const SimulationEffort& effort, Where where);

std::string to_line(const PlanFigures& figures);
// Parses a line of to_line(). Throws std::invalid_argument if it is malformed.
PlanFigures plan_figures(const std::string& line);

}  // namespace rehearse
