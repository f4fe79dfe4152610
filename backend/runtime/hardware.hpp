// What carries out the ops of one rank: processors and sockets, or a GPU and NCCL.
#pragma once

#include <vector>

#include "simulator/schedule/schedule.hpp"

namespace rehearse {

// One run of an op of the rank's program.
struct OpCall {
  int op = 0;  // in the program
  int stream = 0;
  int step = 0;
  int iteration = 0;  // of the innermost repeat; 0 outside
  long nth = 1;       // run of this op, counting from 1 over all steps
};

// A point in a stream: a time where ops end before the next is begun; where streams run on by themselves, an
// event whose time is known later.
struct Moment {
  double time_s = 0;
  int event = -1;
};

// Every stream has a host thread of its own, which alone calls what names its stream. Errors are thrown as
// RunError, and end the run of all ranks.
class Hardware {
public:
  virtual ~Hardware() = default;

  virtual Moment mark(int stream) = 0;
  // Nothing that is issued to `stream` from now on begins before `moment` of another stream.
  virtual void wait_for(int stream, const Moment& moment) = 0;
  // Returns when all that was issued to the stream has ended: before other ranks or other threads are told of
  // it.
  virtual void settle(int stream) = 0;
  // Seconds on the clock of all ranks (runtime/clock.hpp); only after all streams are settled.
  virtual double seconds(const Moment& moment) = 0;

  virtual void compute(const OpCall& call) = 0;
  virtual void host(const OpCall& call) = 0;
  // Returns the rank from which a receive from anyone took its message (-1: the op has none). `over`: a
  // sender that has no more to send said so; nothing was received.
  struct Exchanged {
    int sender = -1;
    bool over = false;
  };
  // `sender`: whom a reply goes to. `begun`: when all sides were ready, if the hardware can tell.
  virtual Exchanged exchange(const OpCall& call, int sender) = 0;
  virtual void collective(const OpCall& call) = 0;
  // Tells the receivers of this rank's messages whose programs repeat without end that no more will come.
  virtual void end_messages() = 0;
};

}  // namespace rehearse
