// The ops that strategies write, with what all of a kind have in common filled in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// What a pass over segments first to end - 1 of the plan's walk computes for one micro-batch, and its FLOPs.
Work pass_work(const StepPlan& plan, Pass pass, int first_segment, int end_segment);
// The number of the work with this key, which `make` makes the first time; micro-batches share it.
int shared_work(StepPlan& plan, const WorkKey& key, const std::function<Work()>& make);
// One step of attention in a ring, which segment `segment` of the walk is.
Work ring_work(const StepPlan& plan, Pass pass, int segment, int step);
// Takes the loss, both passes of it, out of the last layer, and returns it for `replicas` times its outputs:
// for who computes it in one place.
Work take_loss(StepPlan& plan, int replicas);
// A kernel bound by memory that moves `bytes`; `launches`: in so many equal parts.
Kernel memory_kernel(double bytes, double launches = 1);

int add_buffer(Program& program, std::string name, double bytes);  // the tensor's number

// Computes `work` on the compute stream.
Op compute_op(StepPlan& plan, Program& program, std::string name, Pass pass, Work work);
// Adds the optimizer's state to the program, bucket by bucket, unless it is there.
void add_optimizer_state(const StepPlan& plan, StageProgram& stage);
// The stream beside "gradients", where two sums of gradients are under way at the same time.
inline constexpr const char* kSecondGradients = "gradients 2";
// The optimizer's update of the stage's weights from its gradients, whose state it adds to the program. It
// waits for the stage's sends and for the last ops of its streams "gradients" and kSecondGradients.
Op optimizer_op(StepPlan& plan, StageProgram& stage);
// `bytes` to or from each of `peers`, at once.
Op exchange_op(Program& program, std::string name, const std::string& stream, Message::Direction direction,
               const std::vector<Peer>& peers, double bytes);
// The same for a bucket's gradients, or the weights that come back.
Op bucket_exchange(Program& program, std::string name, const std::string& stream, const Bucket& bucket,
                   Message::Direction direction, const std::vector<Peer>& peers, double bytes);
// A collective over a buffer of `bytes` (see Collective::bytes), part of the gradients' sync, with the
// channels that the strategy chose, and for an all-reduce its algorithm. `axes`: of the ranks that take part;
// null: those that sum gradients.
Op collective_op(const StepPlan& plan, Program& program, std::string name, const std::string& stream,
                 CollectiveKind kind, double bytes, const std::vector<GroupAxis>* axes = nullptr);
// Of the bytes of a tensor as it is stored, those that are gathered of it where the framework casts operands
// before it gathers them; 1 where it does not.
double gathered_share(const Scenario& scenario);
// The collective that changes a tensor's placement in a pass, on the compute stream; without a name.
Op change_op(const StepPlan& plan, const Program& program, const ValueChange& change, Pass pass);
// Sums those gradients of a bucket that ranks with shares of the same layers hold summands of, on the compute
// stream; the number of the last op, -1 if there are none. `gradients`: the tensor that holds them.
int sum_partial_gradients(const StepPlan& plan, StageProgram& stage, std::size_t bucket, int gradients);
// Whether bucket `number` has the layer with the embedding that the first and the last stage both keep.
bool holds_tied_embedding(const StepPlan& plan, const StageProgram& stage, std::size_t number);
// First and last stage each keep a tied embedding and add up its gradients, as Megatron-LM does. Nothing to
// write for other stages, or if there is none.
void sync_tied_embedding(const StepPlan& plan, StageProgram& stage);

}  // namespace rehearse
