// Declares the interface that carries out the ops of one rank: on processors and sockets, or on a GPU with
// NCCL.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/schedule/schedule.hpp"
#include "simulator/trace/gpu_record.hpp"
#include "simulator/trace/kernel_span.hpp"

namespace rehearse {

// One execution of an op of the rank's program.
struct OpCall {
  int op = 0;  // index in the program
  int stream = 0;
  int step = 0;
  int iteration = 0;  // of the innermost repeat; 0 outside
};

// A point in a stream: a time or, where streams run asynchronously, an event whose time is known later.
struct Moment {
  double time_s = 0;
  int event = -1;
};

// The outcome of an exchange: the rank (over all roles) whose message a receive from anyone took, or -1 for
// other exchanges; and whether the sender announced that it sends no more, in which case nothing was
// received.
struct Exchanged {
  int sender = -1;
  bool over = false;
};

// Every stream has its own host thread, and only that thread makes the calls that name the stream. A RunError
// thrown by a call ends the run.
class Hardware {
public:
  virtual ~Hardware() = default;

  // Called on every stream before and after each repetition of the schedule.
  virtual void begin_step(int stream) { (void)stream; }
  virtual void end_step(int stream) { (void)stream; }
  virtual Moment mark(int stream) = 0;
  // Makes everything that is issued to `stream` from now on wait for `moment` of another stream.
  virtual void wait_for(int stream, const Moment& moment) = 0;
  // Returns once everything that was issued to the stream has ended.
  virtual void settle(int stream) = 0;
  // Returns the time on this machine's monotonic clock. May be called only after all streams are settled.
  virtual double seconds(const Moment& moment) = 0;
  // Returns by how much these times may be off that clock, in seconds; valid after the first call of
  // seconds().
  virtual double clock_error_s() const { return 0; }
  // Returns the kernels that the device ran for the ops, if they are recorded; valid after the first call of
  // seconds().
  virtual std::vector<KernelSpan> kernels() { return {}; }
  // Returns what the communication library chose for the collectives, if it reports that and it is recorded;
  // valid after all streams are settled.
  virtual std::vector<ChosenCollective> chosen_collectives() const { return {}; }
  // Returns notes on the meaning of the figures of its runs.
  virtual std::vector<std::string> notes() const { return {}; }

  // Does the workload's work on the host for this op, before the op's time begins.
  virtual void prepare(const OpCall& call) = 0;
  virtual void compute(const OpCall& call) = 0;
  virtual void host(const OpCall& call) = 0;
  // Carries out an exchange. `sender` is the rank that a reply goes to. Calls `other_side_here`, which may
  // block, once the other side of an op of one transfer is there (a sender does not wait for its receiver).
  virtual Exchanged exchange(const OpCall& call, int sender,
                             const std::function<void()>& other_side_here) = 0;
  virtual void collective(const OpCall& call) = 0;
  // Notifies receivers whose programs repeat endlessly that this rank sends no more.
  virtual void end_messages() = 0;
  // Makes all waits end with an error because another stream has failed; `why` is the reason.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace rehearse
