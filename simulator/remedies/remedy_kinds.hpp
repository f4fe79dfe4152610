// Declares the kinds of remedies, one function each; remedies.cpp lists them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/remedies/remedy.hpp"

namespace rehearse {

// A result for which remedies are sought.
struct Situation {
  const Scenario& scenario;
  const Metrics& metrics;

  double compute_s() const { return metrics.breakdown.compute_s; }
  double bubble_s() const { return metrics.breakdown.pipeline_bubble_s; }
  double other_s() const { return metrics.breakdown.other_s; }
  double data_stall_s() const { return metrics.breakdown.data_stall_s; }
  double waiting_s(Purpose purpose) const {
    const auto found = metrics.breakdown.exposed_s.find(purpose);
    return found == metrics.breakdown.exposed_s.end() ? 0 : found->second;
  }
};

using Remedies = std::vector<Remedy>;
// Each adds what applies to the situation. Values that the scenario's reader refuses do no harm: they are not
// tried.
using RemedyKind = void (*)(const Situation& now, Remedies& found);

// computing.cpp: what devices compute, and in which pieces.
void recompute_less(const Situation& now, Remedies& found);
void change_micro_batch(const Situation& now, Remedies& found);
void fuse_attention(const Situation& now, Remedies& found);
void fuse_loss(const Situation& now, Remedies& found);
void use_tensor_cores(const Situation& now, Remedies& found);
void launch_by_graphs(const Situation& now, Remedies& found);

// dividing.cpp: degrees of the axes, and the order of the pipeline.
void move_ranks_between_axes(const Situation& now, Remedies& found);
void change_schedule(const Situation& now, Remedies& found);
void change_experts(const Situation& now, Remedies& found);
void change_placement(const Situation& now, Remedies& found);

// unequal.cpp: less work for slower devices.
void suit_slow_stages(const Situation& now, Remedies& found);
void suit_slow_replicas(const Situation& now, Remedies& found);

// loading.cpp: what the input delivers.
void load_faster(const Situation& now, Remedies& found);

// saving.cpp: who writes checkpoints, and when.
void save_beside_training(const Situation& now, Remedies& found);

// communicating.cpp: what is sent, and what overlaps with it.
void overlap_more(const Situation& now, Remedies& found);
void share_tokens(const Situation& now, Remedies& found);
void change_gradient_sync(const Situation& now, Remedies& found);
void change_shards(const Situation& now, Remedies& found);
void change_context(const Situation& now, Remedies& found);
void change_servers(const Situation& now, Remedies& found);

}  // namespace rehearse
