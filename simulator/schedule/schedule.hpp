// Defines a schedule: what every rank does in one step (or a round of several), in which order, on which
// stream. Strategies write it, executors run it, and check() refuses a malformed one and names the ops.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// The ops of those ranks of a role that have the same coordinates on some axes: one program per pipeline
// stage, not per rank.
struct Program {
  std::string name;  // "stage 3"
  int role = 0;
  std::vector<At> where;  // ranks of the role that run it; empty: all
  std::vector<std::string> streams;
  std::vector<Tensor> tensors;
  std::vector<Turn> turns;
  std::vector<Op> ops;  // each stream runs its ops in this order
};

// The kernels of a compute op; micro-batches share one.
struct Work {
  std::string name;
  std::vector<Kernel> kernels;
  double model_flops = 0;         // of the model, without recomputation
  double extra_flops = 0;         // of recomputation
  double parameters_updated = 0;  // elements that an optimizer step updates
  double optimizer_bytes = 0;     // moved for it, unless the device says what it moves per parameter
  Precision precision = Precision::bf16;
};

// How workers (role 0) that do not wait for each other are measured. They have no common step: each worker's
// steps are its own rounds, and figures that concern all of them are measured in a window of time.
struct Asynchrony {
  int warmup_rounds = 0;  // of each worker, before the window
  int window_rounds = 1;  // of each worker in it, at least, for each step to measure
  // A worker that has finished these rounds continues until the last one has, so that no worker is measured
  // without the others' load, but never beyond this number of rounds.
  int most_rounds = 1;
  int server_role = 1;
  // Ops of the servers' program, by worker: the one that applies what the worker pushed last in a round, and
  // the one that sends it the weights of the next round.
  std::vector<int> applies, sends;
  // By worker: which weights it has. Only gradients for the same weights make its gradients stale.
  std::vector<int> weights_of;
  // When each rank begins, in seconds, by simulation and by rank over all roles. Predictions are means over
  // these simulations; a real run is a single one and ignores this.
  std::vector<std::vector<double>> starts_s;
};

struct Schedule {
  std::vector<Role> roles;
  std::vector<Program> programs;
  std::vector<Work> works;
  double samples = 0;  // trained in the entire schedule by all ranks together
  double tokens = 0;
  int optimizer_steps = 1;  // in the schedule: results are per optimizer step
  // Some ranks finish a step before others and begin the next, so a step takes the time from the end of one
  // to the end of the next.
  bool staggered = false;
  // Ranks load batches of the next repetition, so a run reaches its usual state after some repetitions, and
  // the last one loads less than the others.
  bool loads_ahead = false;
  std::optional<Asynchrony> asynchrony;

  int ranks() const;                         // of all roles
  int first_rank(int role) const;            // ranks of a role are numbered after those of the previous roles
  int program_of(int role, int rank) const;  // -1 if none
  // Returns whether an effect crosses the end of a step: a dependency with steps_back, a counter, or a
  // receive from any rank.
  bool crosses_step() const;
  // Returns how often a phase repeats the schedule to measure `steps` steps: effects that cross the end of a
  // step reach their usual state only after a first, unmeasured step.
  int repeats(int steps) const;
  // Returns how many further repetitions must follow, so that the last measured one also loads for a next
  // one.
  int beyond() const { return loads_ahead ? 1 : 0; }
  bool has_control_ops() const;
};

// Throws RunError, naming the ops, if the schedule is malformed. Checks that every send has its receive and
// both agree on the bytes; that members call a group's collectives in the same order with the same bytes;
// that there is no cycle (no op waits for itself, directly or indirectly); that there is no race (two
// unordered ops on one tensor, at least one of them writing); that every rank has one program; and that
// indices are in range.
void check(const Schedule& schedule);

// A part of a job: a schedule and how often it repeats. A strategy is a pure function of the membership, so a
// phase that follows a loss or a join has its own schedule.
struct Phase {
  std::shared_ptr<const Schedule> schedule;
  int repeats = 1;
  double until_s = std::numeric_limits<double>::infinity();  // no step begins after this time
  int beyond = 0;  // of the last phase of a job that runs alone: further repeats, which are not recorded
};

struct Job {
  std::string name;
  std::vector<Phase> phases;
  // Where each rank is, by rank over all roles (endpoints of the cluster). The same for all phases.
  std::vector<int> endpoints;
  // Seconds after which each rank begins, by rank over all roles; empty: all begin at 0. Ranks that begin at
  // different times are not folded.
  std::vector<double> start_s = {};
};

// A change to the cluster at a given time.
struct Event {
  enum class Kind {
    device_speed,   // `endpoint` computes at `factor` times its speed from now on
    link_capacity,  // `link` carries `factor` times its bandwidth from now on
    device_death,   // ranks at `endpoint` stop; their job fails
    link_death,     // transfers over `link` fail, and with them their job
  } kind = Kind::device_speed;
  double time_s = 0;
  int endpoint = -1;
  int link = -1;
  double factor = 1;
};

struct Run {
  std::vector<Job> jobs;
  std::vector<Event> events;
};

}  // namespace rehearse
