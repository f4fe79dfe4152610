// A pipeline stage's program while it is being written, and the helpers that the writers of its parts share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/program_edit.hpp"
#include "simulator/schedule/schedule.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/programs/algorithm.hpp"
#include "simulator/strategies/programs/buckets.hpp"
#include "simulator/strategies/programs/stage_input.hpp"
#include "simulator/strategies/programs/walk.hpp"

namespace rehearse {

// A pass over segments [first, end), and a step of ring attention (-1: none; -n: one of n equal chunks).
using WorkKey = std::tuple<Pass, int, int, int>;

// Everything that the writers of a step's programs share. Worker ranks are role 0, whose ranks form one mesh.
struct StepPlan {
  const Scenario& scenario;
  std::vector<Layer> model;             // for one micro-batch, on one device
  std::vector<LayerCost> layers;        // the same with merged segments, and the last stage's tied embedding
  Walk walk;                            // over the model's segments
  std::vector<double> transient_bytes;  // by layer: bytes that recomputation restores temporarily
  int data_axis = 0, pipeline_axis = 1, context_axis = -1;
  // The axes over which ranks with the same weights sum their gradients, the innermost first; and those of
  // ranks that hold the same experts, if experts are placed separately.
  std::vector<GroupAxis> gradient_axes, expert_axes;
  std::vector<double> expert_parameters;  // by layer, if experts are placed separately; else empty
  // By layer and rank of an expert group: rows over their mean (expert_loads()). Empty if all are equal.
  std::vector<std::vector<double>> expert_loads;
  double tied_parameters = 0;      // of the table on both the first and the last stage; 0: none
  std::vector<LayerRange> parts;   // of the model; orders/order.hpp says which stage holds which
  std::vector<int> endpoints;      // by rank: the workers'; code that adds a role appends its endpoints
  std::vector<std::string> notes;  // assumptions worth reporting, one sentence each
  std::shared_ptr<AlgorithmChoice> algorithms;  // chooses the algorithms of all-reduces
  std::optional<BatchLoader> input;             // nothing: batches are there when they are needed
  Schedule schedule;
  // If strategy.overlap_passes: by stage, where each pass begins in its program, and where the last one ends.
  std::vector<std::vector<int>> first_ops;
  std::map<WorkKey, int> pass_works;  // indices of works
};

// Into how many shards the ranks that share a batch split each kind of state.
struct HeldShards {
  int weights = 1, gradients = 1, optimizer = 1;
};

// How a stage's gradients are sent and its weights come back.
struct StageTraffic {
  bool sends_gradients = false;   // in buckets; during the backward pass if the strategy overlaps
  bool receives_weights = false;  // bucket by bucket, before the next step's forward pass
  bool every_forward = false;     // receives weights before each forward pass
  bool every_backward = false;    // sends gradients after each backward pass
  HeldShards held = {};
};

// A model chunk: the only model part that the stage holds, or one of strategy.virtual_stages.
struct Chunk {
  LayerRange layers;
  int before = -1, behind = -1;                  // stages that hold the parts before and after it; -1: none
  std::size_t first_bucket = 0, end_bucket = 0;  // the range of its buckets in StageProgram::buckets
};

struct StageProgram {
  int stage = 0, stages = 1;
  std::vector<Chunk> chunks;
  LayerRange layers;  // from the first chunk's first to the last chunk's last; with gaps between chunks
  Program program;
  std::vector<Bucket> buckets;          // in order of the backward pass; no bucket spans two chunks
  std::vector<int> weights, gradients;  // tensors by bucket; -1: the bucket has no parameters
  std::vector<int> optimizer_state;     // the same, once an optimizer that has state has been written
  bool cut_first_forward = false;       // one op per bucket, because weights arrive bucket by bucket
  bool cut_last_backward = false;       // one op per bucket, because gradients are sent bucket by bucket
  bool cut_every_forward = false, cut_every_backward = false;  // the same in all passes
  HeldShards held;
  std::vector<int> forward_of_bucket;   // ops of the first micro-batch
  std::vector<int> backward_of_bucket;  // the last micro-batch's ops that complete the gradients
  std::vector<int> sends;               // the last sends, which the end of the step waits for

  double parameters() const;
};

// Returns the program of stage `number` with its buckets, weights and gradients, but without ops.
StageProgram begin_stage(const StepPlan& plan, int number, StageTraffic traffic);
// Like the overload above, with buckets by another rule; they cover a chunk's layers in order of the backward
// pass.
using BucketRule = std::function<std::vector<Bucket>(const LayerRange& layers)>;
StageProgram begin_stage(const StepPlan& plan, int number, StageTraffic traffic, const BucketRule& rule);
// Ends a step that has no optimizer op once the last sends have ended.
void end_stage(StepPlan& plan, StageProgram& stage);

// Returns the condition that makes a worker a member of the stage.
std::vector<At> at_stage(const StepPlan& plan, int stage);
// Workers that hold the same weights: those of one stage at the same coordinates of the axes that split its
// layers.
struct WeightHolders {
  int stage = 0;
  std::vector<At> where;
  std::string name;  // " of stage 1", " of stage 1, tensor 2"; empty if all workers hold the same weights
};
// Returns all groups of such workers, ordered by stage.
std::vector<WeightHolders> weight_holders(const StepPlan& plan);
// Return the number of ranks over which gradients are summed, and the same for experts that are placed
// separately.
int gradient_ranks(const StepPlan& plan);
int expert_ranks(const StepPlan& plan);
// Returns the bytes of gradients that a collective or a message of the bucket carries.
double gradient_bytes(const StepPlan& plan, const Bucket& bucket);
// The part of a bucket whose gradients (and weights, if they are sharded) belong to one group of ranks.
struct BucketPart {
  double parameters = 0;
  std::vector<GroupAxis> axes;
  int ranks = 1;
  std::string name;  // " of experts", or empty
  int number = 0;    // Action::part
};
// Returns the parts that have parameters: dense ones, and experts that are placed separately.
std::vector<BucketPart> parts_of(const StepPlan& plan, const Bucket& bucket);
// The ranks that hold a part, relative to the groups of ranks that shard dense weights: those that belong to
// one such group shard the part, and those with the same position in other groups hold copies of the shard.
struct PartHolders {
  int shards = 1;
  std::vector<GroupAxis> shard, replicas;
};
// `shards`: ranks of a group; 1: nothing is sharded. A group consists of neighbours along
// StepPlan::gradient_axes and contains a complete copy of the model, so it contains all ranks of the other
// axes. Experts that are placed over several ranks of a group are held by fewer of its ranks, at the limit by
// one.
PartHolders part_holders(const StepPlan& plan, const BucketPart& part, int shards);
// Returns the bucket's parameters that each rank holds if groups of `shards` ranks shard them.
double kept_parameters(const StepPlan& plan, const Bucket& bucket, int shards);
std::string layers_text(const Bucket& bucket);  // "layers 3-5"
// Returns "layers 3-5", or, if the layers are not complete, "layer 3 residual to layer 4 projection".
std::string segments_text(const StepPlan& plan, int first, int end);
// Returns the group of ranks that share these factors with a rank.
Group group_of(const StepPlan& plan, const std::vector<int>& factors);

// Returns an op on the compute stream that takes no time: the step's first op, or the one that waits for its
// end.
Op marker(StepPlan& plan, StageProgram& stage, const std::string& name);

}  // namespace rehearse
