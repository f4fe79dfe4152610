// Declares what synchronous and asynchronous parameter servers share: the worker's part, and the bytes
// between a worker and a server.
#pragma once

#include <string>
#include <vector>

#include "simulator/strategies/programs/stage_program.hpp"

namespace rehearse {

inline constexpr int kServerRole = 1;

// Return the bytes between one worker and one server for a bucket.
double push_bytes(const StepPlan& plan, const Bucket& bucket);
double pull_bytes(const StepPlan& plan, const Bucket& bucket);

// How a server's tensor is divided: Tensor::shards and Tensor::slot_count.
struct Division {
  int shards = 1, slot_count = 1;
};
Tensor server_tensor(TensorKind kind, std::string name, const Bucket& bucket, Precision type, double bytes,
                     Division division);
// Returns a server's update of its share of a bucket, from gradients that it has summed or that come from one
// worker.
Work update_work(const StepPlan& plan, const Bucket& bucket, int servers);
Op update_op(Program& program, std::string name, const std::string& stream, const Bucket& bucket, int work);

// Writes the worker's part. With `overlap`, a bucket is pushed as soon as its backward pass is done, and the
// next step's forward pass waits for each bucket's weights only when it reaches their layers. Without it, the
// step ends with all pushes and then all pulls.
void write_push_and_pull(StepPlan& plan, StageProgram& stage);

// parameter_server_sync.cpp: receives all workers' gradients, sums them, updates, and sends new weights to
// all.
Program synchronous_server(StepPlan& plan, const std::vector<StageProgram>& stages);
// parameter_server_async.cpp: serves each worker as it arrives; stores the rounds to simulate in
// plan.schedule.
Program asynchronous_server(StepPlan& plan, const std::vector<StageProgram>& stages);

}  // namespace rehearse
