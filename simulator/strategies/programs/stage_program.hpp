// A pipeline stage's program while it is being written, and what the writers of its parts share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "simulator/scenario/scenario.hpp"
#include "simulator/schedule/schedule.hpp"
#include "simulator/strategies/layout/stages.hpp"
#include "simulator/strategies/programs/algorithm.hpp"
#include "simulator/strategies/programs/buckets.hpp"
#include "simulator/strategies/programs/walk.hpp"

namespace rehearse {

// A pass over segments [first, end), and a step of attention in a ring (-1: none; -n: one of n equal chunks).
using WorkKey = std::tuple<Pass, int, int, int>;

// The step as a whole. Worker ranks are role 0, factored by one mesh.
struct StepPlan {
  const Scenario& scenario;
  std::vector<Layer> model;       // for one micro-batch, on one device
  std::vector<LayerCost> layers;  // the same as a whole; the last stage's copy of a tied embedding included
  Walk walk;                      // over the model's segments
  std::vector<double> transient_bytes;  // by layer: activations that recomputation brings back for a while
  int data_axis = 0, pipeline_axis = 1, context_axis = -1;
  // Over which ranks with the same weights sum their gradients, the innermost first; and those ranks that
  // hold the same experts, where these are placed apart.
  std::vector<GroupAxis> gradient_axes, expert_axes;
  std::vector<double> expert_parameters;  // by layer, where they are
  // By layer and rank of an expert group: rows over their mean (expert_loads()). Empty if all are equal.
  std::vector<std::vector<double>> expert_loads;
  double tied_parameters = 0;      // of the table that first and last stage both keep; 0: none
  std::vector<LayerRange> parts;   // of the model; who holds which: simulator/strategies/orders/order.hpp
  std::vector<int> endpoints;      // by rank: the workers'; who adds a role adds where its ranks sit
  std::vector<std::string> notes;  // assumptions worth telling, one sentence each
  std::shared_ptr<AlgorithmChoice> algorithms;  // of all-reduces
  Schedule schedule;
  // If strategy.overlap_passes: by stage, where its passes begin in its program, and where the last one ends.
  std::vector<std::vector<int>> first_ops;
  std::map<WorkKey, int> pass_works;  // numbers of works
};

// In how many shards the ranks that share a batch hold what belongs to a parameter.
struct HeldShards {
  int weights = 1, gradients = 1, optimizer = 1;
};

// How a stage's gradients leave it and its weights come back.
struct StageTraffic {
  bool sends_gradients = false;   // in buckets; behind the backward pass if the strategy overlaps
  bool receives_weights = false;  // bucket by bucket, before the next step's forward pass
  bool every_forward = false;     // receives weights before each forward pass
  bool every_backward = false;    // sends gradients behind each backward pass
  HeldShards held = {};
};

// A model part that the stage holds: its only one, or one of strategy.virtual_stages.
struct Chunk {
  LayerRange layers;
  int before = -1, behind = -1;  // stages that hold the parts before and behind it; -1: there is none
  std::size_t first_bucket = 0, end_bucket = 0;  // of its gradients
};

struct StageProgram {
  int stage = 0, stages = 1;
  std::vector<Chunk> chunks;
  LayerRange layers;  // from the first chunk's first to the last chunk's last; others' lie between chunks
  Program program;
  std::vector<Bucket> buckets;          // in order of the backward pass; none reaches over two chunks
  std::vector<int> weights, gradients;  // tensors by bucket; -1: nothing to train in it
  std::vector<int> optimizer_state;     // the same, once an optimizer has been written that keeps one
  bool cut_first_forward = false;       // one op a bucket, because weights arrive bucket by bucket
  bool cut_last_backward = false;       // one op a bucket, because gradients leave bucket by bucket
  bool cut_every_forward = false, cut_every_backward = false;  // the same in all passes
  HeldShards held;
  std::vector<int> forward_of_bucket;   // ops of the first micro-batch
  std::vector<int> backward_of_bucket;  // ops of the last micro-batch that complete the gradients
  std::vector<int> sends;               // the last ones, which the step's end waits for

  double parameters() const;
};

// A stage's program with its buckets, weights and gradients, and no ops yet.
StageProgram begin_stage(const StepPlan& plan, int stage, StageTraffic traffic);
// The same with buckets of another rule, which cover a chunk's layers in order of the backward pass.
using BucketRule = std::function<std::vector<Bucket>(const LayerRange& layers)>;
StageProgram begin_stage(const StepPlan& plan, int stage, StageTraffic traffic, const BucketRule& rule);
// Where nothing else ends the step, it ends when the last sends have ended.
void end_stage(StepPlan& plan, StageProgram& stage);

int find_stream(const Program& program, const std::string& name);  // -1 if there is none
int stream_named(Program& program, const std::string& name);       // added if there is none
int add_tensor(Program& program, Tensor tensor);
int add_op(Program& program, Op op);                        // the op's number
int last_op_of_stream(const Program& program, int stream);  // -1 if it has none, or there is no such stream

// The condition that makes a worker a member of the stage.
std::vector<At> at_stage(const StepPlan& plan, int stage);
// Workers that hold the same weights: those of a stage, and of the axes that share out its layers, at one
// place.
struct WeightHolders {
  int stage = 0;
  std::vector<At> where;
  std::string name;  // " of stage 1", " of stage 1, tensor 2"; empty if all workers do
};
// In the order of the stages.
std::vector<WeightHolders> weight_holders(const StepPlan& plan);
// Ranks over which gradients are summed, and those of experts that are placed apart.
int gradient_ranks(const StepPlan& plan);
int expert_ranks(const StepPlan& plan);
// Collectives and messages of bucket `b` carry this many bytes of gradients.
double gradient_bytes(const StepPlan& plan, const Bucket& bucket);
// The part of a bucket whose gradients, and weights if they are shared out, one group of ranks has in common.
struct BucketPart {
  double parameters = 0;
  std::vector<GroupAxis> axes;
  int ranks = 1;
  std::string name;  // " of experts", or nothing
  int number = 0;    // Action::part
};
// What has parameters: dense ones, and experts that are placed apart.
std::vector<BucketPart> parts_of(const StepPlan& plan, const Bucket& bucket);
// Parameters of the bucket that a rank keeps where those with the same weights hold them in `shards`.
double kept_parameters(const StepPlan& plan, const Bucket& bucket, int shards);
std::string layers_text(const Bucket& bucket);  // "layers 3-5"
// "layers 3-5", or where they are not whole, "layer 3 residual to layer 4 projection".
std::string segments_text(const StepPlan& plan, int first, int end);
// The ranks with which a rank shares these factors.
Group group_of(const StepPlan& plan, const std::vector<int>& factors);

// An op on the compute stream that takes no time: the step's first, or the one that waits for the step's end.
Op marker(StepPlan& plan, StageProgram& stage, const std::string& name);

}  // namespace rehearse
