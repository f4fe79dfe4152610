// The simulation of one plan: its figures as one line of text, which other processes and later runs read.
#pragma once

#include <optional>
#include <string>

#include "simulator/commands/plan_question.hpp"
#include "simulator/commands/predict.hpp"

namespace rehearse {

struct PlanFigures {
  enum class Status { ok, too_large, refused, failed } status = Status::failed;
  std::string error;  // of a refused or failed plan
  double step_time_s = 0, samples_per_s = 0, tokens_per_s = 0, mfu = 0;
  // Of a device's step, a mean over all.
  double compute_s = 0, communication_s = 0, bubble_s = 0, other_s = 0;
  double memory_bytes = 0;    // of tensors, on the fullest device
  double reserved_bytes = 0;  // besides: estimated, of CUDA, NCCL and cuBLAS
  std::string fullest;        // "stage 1"
  // The step without what gradients and updates have on its critical path: no plan that differs in them alone
  // is faster.
  double without_gradients_s = 0;
  // 0: all micro-batches were simulated; else so many, and the step was extended from them.
  int simulated_microbatches = 0;
  std::string result;  // as `rehearse simulate --format json` has it, if all micro-batches were simulated
};
inline constexpr std::array<std::string_view, 4> kPlanStatusNames = {"ok", "too large", "refused", "failed"};

// What a plan may need of a device: its tensors and what is kept free beside them.
struct MemoryLimit {
  double capacity_bytes = 0;            // 0: no limit
  std::optional<double> reserve_bytes;  // none: what CUDA, NCCL and cuBLAS are estimated to keep
  double needed(const PlanFigures& figures) const {
    return figures.memory_bytes + reserve_bytes.value_or(figures.reserved_bytes);
  }
  bool fits(const PlanFigures& figures) const {
    return capacity_bytes <= 0 || needed(figures) <= capacity_bytes;
  }
};

// The scenario's figures as simulated in full.
PlanFigures figures_of(const Prediction& prediction);

// How much may be simulated. A plan of more than `most_ops` ops is simulated with fewer micro-batches, twice;
// the step with all of them follows from how much longer it takes with more. If that is near the plan's
// bound, a third simulation tells whether steps grow evenly; if not, all micro-batches are simulated.
struct SimulationEffort {
  double most_ops = 0;  // 0: all micro-batches are simulated in any case
  double bound_s = 0;   // 0: the third simulation is made in any case
};

// A plan that is too large is not simulated.
PlanFigures simulate_plan(const PlanQuestion& question, const PlanChoice& plan, const MemoryLimit& memory,
                          const SimulationEffort& effort, Where where);

std::string to_line(const PlanFigures& figures);
// std::invalid_argument if the line is not of this form.
PlanFigures plan_figures(const std::string& line);

}  // namespace rehearse
