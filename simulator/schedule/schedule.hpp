// A schedule: what every rank does in one step (or a round of some), in which order, on which stream.
// Strategies write it, executors carry it out, and check() refuses a bad one with the ops named.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "simulator/schedule/op.hpp"

namespace rehearse {

// What the ranks of one role with the same coordinates on some axes do: one program a pipeline stage, not a
// rank.
struct Program {
  std::string name;  // "stage 3"
  int role = 0;
  std::vector<At> where;  // ranks of the role that run it; empty: all
  std::vector<std::string> streams;
  std::vector<Tensor> tensors;
  std::vector<Turn> turns;
  std::vector<Op> ops;  // each stream runs its ops in this order
};

// The kernels behind a compute op; micro-batches share one.
struct Work {
  std::string name;
  std::vector<Kernel> kernels;
  double model_flops = 0;         // of the model, without recomputation
  double extra_flops = 0;         // recomputed
  double parameters_updated = 0;  // an optimizer step over this many parameters (elements)
  double optimizer_bytes = 0;     // moved for it, unless the device says what it moves per parameter
  Precision precision = Precision::bf16;
};

// Workers (role 0) that do not wait for each other have no step in common: the steps of each are rounds of
// its own, and what is true of all of them is measured in a window of time.
struct Asynchrony {
  int warmup_rounds = 0;  // of each worker, before the window
  int window_rounds = 1;  // of each worker in it, at least, for each step that is to be measured
  // A worker that has done all these goes on until the last one has, so that nobody is measured without the
  // others' load, but never beyond this many rounds.
  int most_rounds = 1;
  int server_role = 1;
  // Ops of the servers' program, by worker: which applies what it pushed last in a round, and which sends it
  // the weights of the next round.
  std::vector<int> applies, sends;
  // By worker: which weights it has. Gradients of others make only those stale that are of the same weights.
  std::vector<int> weights_of;
  // When each rank begins, in seconds, by simulation and by rank over all roles. Predictions are means over
  // these simulations; a real run is one and takes no notice.
  std::vector<std::vector<double>> starts_s;
};

struct Schedule {
  std::vector<Role> roles;
  std::vector<Program> programs;
  std::vector<Work> works;
  double samples = 0;  // trained in the whole schedule, all ranks together
  double tokens = 0;
  int optimizer_steps = 1;  // that it holds: results are of one of them
  // Some ranks are done with a step before others and begin the next, so that a step takes the time from the
  // end of one to the end of the next.
  bool staggered = false;
  std::optional<Asynchrony> asynchrony;

  int ranks() const;               // of all roles
  int first_rank(int role) const;  // ranks of a role are numbered behind those of the roles before it
  int program_of(int role, int rank) const;  // -1 if none
  // Something reaches over the end of a step: a dependency with steps_back, a counter, a receive from anyone.
  bool crosses_step() const;
  // How often a phase repeats it so that `steps` can be measured: what reaches over the end of a step finds
  // its usual state only after a first, unmeasured one.
  int repeats(int steps) const;
  bool has_control_ops() const;
};

// Refuses a bad schedule: RunError that names the ops. Checked: every send has its receive and both agree on
// the bytes; members call a group's collectives in the same order with the same bytes; no cycle (nothing
// waits for itself, however far around); no race (two ops on one tensor, one of them writing, in no order);
// every rank has one program; indices are in range.
void check(const Schedule& schedule);

// How a job goes: phases, each a schedule repeated; a strategy is a pure function of the membership, so a
// phase that follows a loss or a join has its own schedule.
struct Phase {
  std::shared_ptr<const Schedule> schedule;
  int repeats = 1;
  double until_s = std::numeric_limits<double>::infinity();  // no step begins after this time
};

struct Job {
  std::string name;
  std::vector<Phase> phases;
  // Where each rank sits, by rank over all roles (endpoints of the cluster). One for all phases.
  std::vector<int> endpoints;
  // Seconds after which each rank begins, by rank over all roles; empty: all begin at 0. Ranks that begin at
  // different times are not folded.
  std::vector<double> start_s = {};
};

// Something that happens to the cluster at a given time.
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
