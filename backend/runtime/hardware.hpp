// What carries out the ops of one rank: processors and sockets, or a GPU and NCCL.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/schedule/schedule.hpp"
#include "simulator/trace/gpu_record.hpp"
#include "simulator/trace/kernel_span.hpp"

namespace rehearse {

// One run of an op of the rank's program.
struct OpCall {
  int op = 0;  // in the program
  int stream = 0;
  int step = 0;
  int iteration = 0;  // of the innermost repeat; 0 outside
};

// A point in a stream: a time; or where streams run on by themselves, an event whose time is known later.
struct Moment {
  double time_s = 0;
  int event = -1;
};

// What came of an exchange: from whom a receive from anyone took its message (a rank over all roles; -1: it
// was none), and whether the sender said that no more will come, and nothing was received.
struct Exchanged {
  int sender = -1;
  bool over = false;
};

// Every stream has a host thread of its own, which alone calls what names its stream. RunError ends the run.
class Hardware {
public:
  virtual ~Hardware() = default;

  // Around each repetition of the schedule, on every stream.
  virtual void begin_step(int stream) { (void)stream; }
  virtual void end_step(int stream) { (void)stream; }
  virtual Moment mark(int stream) = 0;
  // Nothing that is issued to `stream` from now on begins before `moment` of another stream.
  virtual void wait_for(int stream, const Moment& moment) = 0;
  // Returns when all that was issued to the stream has ended.
  virtual void settle(int stream) = 0;
  // On this machine's monotonic clock; only after all streams are settled.
  virtual double seconds(const Moment& moment) = 0;
  // By how much these times may be off that clock, in s; after the first call of seconds().
  virtual double clock_error_s() const { return 0; }
  // What the device carried out under the ops, if that is recorded; only after the first call of seconds().
  virtual std::vector<KernelSpan> kernels() { return {}; }
  // What its library chose for the collectives, if that is recorded and told; after all streams are settled.
  virtual std::vector<ChosenCollective> chosen_collectives() const { return {}; }
  // On what the figures of its runs mean.
  virtual std::vector<std::string> notes() const { return {}; }

  // Before the op's time begins: what its workload does on the host.
  virtual void prepare(const OpCall& call) = 0;
  virtual void compute(const OpCall& call) = 0;
  virtual void host(const OpCall& call) = 0;
  // `sender`: whom a reply goes to. `other_side_here` is called once the other side of an op of one transfer
  // is there (a sender does not wait for its receiver), and may make it wait.
  virtual Exchanged exchange(const OpCall& call, int sender,
                             const std::function<void()>& other_side_here) = 0;
  virtual void collective(const OpCall& call) = 0;
  // Tells receivers whose programs repeat without end that this rank sends no more.
  virtual void end_messages() = 0;
  // Ends all waiting with an error: another stream has failed, for which `why` is the reason.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace rehearse
