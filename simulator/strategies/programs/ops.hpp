// Creates the ops that strategies write, with the fields filled in that all ops of a kind share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

// Returns what a pass over segments first to end - 1 of the plan's walk computes for one micro-batch, and its
// FLOPs.
Work pass_work(const StepPlan& plan, Pass pass, int first_segment, int end_segment);
// The same for micro-batches of another size: `segments` are those of the walk, with their costs.
Work pass_work(const StepPlan& plan, const std::vector<const Segment*>& segments, Pass pass,
               int first_segment, int end_segment);
// Returns the index of the work with this key. Calls `make` for the first op with the key; micro-batches
// share it.
int shared_work(StepPlan& plan, const WorkKey& key, const std::function<Work()>& make);
// Returns the work of one step of the ring attention that is segment `segment` of the walk.
Work ring_work(const StepPlan& plan, Pass pass, int segment, int step);
// Removes the loss (forward and backward) from the last layer and returns it, scaled to `replicas` times its
// outputs, for strategies that compute it in one place.
Work take_loss(StepPlan& plan, int replicas);
// Returns a memory-bound kernel that moves `bytes` in `launches` equal parts.
Kernel memory_kernel(double bytes, double launches = 1);

int add_buffer(Program& program, std::string name, double bytes);  // returns the tensor's index

// Returns an op that computes `work` on the compute stream.
Op compute_op(StepPlan& plan, Program& program, std::string name, Pass pass, Work work);
// Adds the optimizer's state to the program, one tensor per bucket, unless it is already there.
void add_optimizer_state(const StepPlan& plan, StageProgram& stage);
// The second stream for sums of gradients, used when two of them run at the same time.
inline constexpr const char* kSecondGradients = "gradients 2";
// Returns the optimizer's update of the stage's weights from its gradients, and adds the optimizer's state to
// the program. The op waits for the stage's sends and for the last ops of its streams "gradients" and
// kSecondGradients.
Op optimizer_op(StepPlan& plan, StageProgram& stage);
// Returns an op that sends or receives `bytes` to or from each of `peers` at once.
Op exchange_op(Program& program, std::string name, const std::string& stream, Message::Direction direction,
               const std::vector<Peer>& peers, double bytes);
// Like exchange_op(), for a bucket's gradients or the weights that come back.
Op bucket_exchange(Program& program, std::string name, const std::string& stream, const Bucket& bucket,
                   Message::Direction direction, const std::vector<Peer>& peers, double bytes);
// Returns a collective over a buffer of `bytes` (see Collective::bytes) that is part of the gradient
// synchronization, with the channels that the strategy chose and, for an all-reduce, its algorithm. `axes`:
// the axes of the ranks that take part; null: those that sum gradients.
Op collective_op(const StepPlan& plan, Program& program, std::string name, const std::string& stream,
                 CollectiveKind kind, double bytes, const std::vector<GroupAxis>* axes = nullptr);
// Returns the fraction of a tensor's stored bytes that is gathered if the framework casts operands before it
// gathers them; 1 if it does not.
double gathered_share(const Scenario& scenario);
// Returns the collective that changes a tensor's placement in a pass, on the compute stream. The op has no
// name yet.
Op change_op(const StepPlan& plan, const Program& program, const ValueChange& change, Pass pass);
// Sums the gradients of bucket `number` of which ranks that share layers hold partial sums, on the compute
// stream. Returns the index of the last op, or -1 if there are none. `gradients`: the tensor that holds them.
int sum_partial_gradients(const StepPlan& plan, StageProgram& stage, std::size_t number, int gradients);
// Returns whether bucket `number` contains the layer with the embedding that both the first and the last
// stage hold.
bool holds_tied_embedding(const StepPlan& plan, const StageProgram& stage, std::size_t number);
// The first and the last stage each hold a tied embedding and sum its gradients, as Megatron-LM does. Writes
// no op for other stages, or if there is no tied embedding.
void sync_tied_embedding(const StepPlan& plan, StageProgram& stage);
void note_tied_embedding(StepPlan& plan);  // says so in the plan's notes, if there is one

}  // namespace rehearse
