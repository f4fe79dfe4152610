// Declares what strategies with servers share: what workers push and pull, the bytes between a worker and a
// server, and a server's program.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/strategies/programs/stage_hooks.hpp"

namespace rehearse {

inline constexpr int kServerRole = 1;

// Return the bytes between one worker and one of `servers` servers for a bucket.
double push_bytes(const StepPlan& plan, const Bucket& bucket, int servers);
double pull_bytes(const StepPlan& plan, const Bucket& bucket, int servers);

// How a server's tensor is divided: Tensor::shards and Tensor::slot_count.
struct Division {
  int shards = 1, slot_count = 1;
};
Tensor server_tensor(TensorKind kind, std::string name, const Bucket& bucket, Precision type, double bytes,
                     Division division);
// Returns an op that takes no time, which begins or ends a server's step.
Op idle_op(StepPlan& plan, Program& program, const char* name);
// Returns a server's update of its share of a bucket, from gradients that it has summed or that come from one
// worker.
Work update_work(const StepPlan& plan, const Bucket& bucket, int servers);
Op update_op(Program& program, std::string name, const std::string& stream, const Bucket& bucket, int work);

// Where workers push gradients to, and from where they pull weights.
struct Servers {
  Peer peer;      // Peer::each(): a share of each bucket to each of them
  int count = 1;  // into how many shares a bucket is divided
  // With overlap: the next step's forward pass waits for each bucket's weights only when it reaches their
  // layers. Otherwise the step ends with all pulls.
  bool pulls_in_next_step = false;
};
// Returns hooks of the worker: with overlap, a bucket is pushed as soon as its backward pass is done; without
// it, the step ends with all pushes and then all pulls.
std::unique_ptr<StageHooks> push_and_pull(StepPlan& plan, int stage, const Servers& servers);

// parameter_server_sync.cpp: returns the program of role `role`, whose `servers` ranks receive the gradients
// of all `clients` ranks of role `client_role`, sum them, update, and send new weights to all.
struct SynchronousServers {
  int role = kServerRole, servers = 1;
  int client_role = kWorkers, clients = 1;
};
Program synchronous_server(StepPlan& plan, const std::vector<StageProgram>& stages,
                           const SynchronousServers& servers);
// parameter_server_async.cpp: serves each worker as it arrives; stores the rounds to simulate in
// plan.schedule.
Program asynchronous_server(StepPlan& plan, const std::vector<StageProgram>& stages);

}  // namespace rehearse
