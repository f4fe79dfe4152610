// Combines the uncertainties of constants into an interval around a predicted time.
#pragma once

#include <vector>

#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// Scatter between runs of one plan on one machine: the standard deviation of ln(step time) of configurations
// that were measured several times, pooled over the shipped tables (48 degrees of freedom): 3.3 % on 384 GPUs
// (bloom-2022), 2.9 % on 64 to 1,024 (megatron-bridge-dense), 2.4 % between releases (nemo-h100-2024), 0.6 %
// on 8 (bert-nvidia).
inline constexpr double kDeviationOfRuns = 0.028;

// 90 % of a normal distribution lies within this many standard deviations of its mean.
inline constexpr double kDeviationsOf90Percent = 1.645;

// Combines the effects of constants. Constants are assumed to be independent and their effects on ln(time) to
// be additive, so the squares of the effects are added (first-order error propagation, separately on each
// side). `scatter`, the standard deviation of ln(time) between measurements that have the same prediction, is
// added on both sides. The interval extends kDeviationsOf90Percent standard deviations to each side.
// Effects smaller than the rounding of a simulated time are left out.
Uncertainty propagated(double predicted_s, std::vector<Uncertainty::Effect> effects, double scatter);

}  // namespace rehearse
