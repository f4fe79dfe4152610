// Sums gradients over the ranks with the same weights, bucket by bucket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/strategies/gradients/fusion.hpp"
#include "simulator/strategies/programs/stage_hooks.hpp"

namespace rehearse {

// Writes the all-reduce of a bucket's gradients, which `gradients` holds, over the ranks with the same
// weights; an op for each part of the bucket (parts_of()). Returns the last one; -1: there is no other rank.
int write_bucket_sum(const StepPlan& plan, StageProgram& stage, std::size_t bucket, int gradients,
                     const std::string& stream, const std::vector<Dependency>& after);

// Returns hooks that sum each bucket as soon as it is complete. `fusion`: Horovod's rule forms the buckets.
std::unique_ptr<StageHooks> bucket_sums(StepPlan& plan, int stage, const std::optional<FusionBuffer>& fusion,
                                        const CompressionChoice& compression);

}  // namespace rehearse
