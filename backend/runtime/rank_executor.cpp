#include "backend/runtime/rank_executor.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "models/text/error.hpp"
#include "simulator/schedule/stream_cursor.hpp"

namespace rehearse {
namespace {

// Thrown through a stream that has nothing left to do, because what it waits for will not come.
struct StreamOver {};
// Thrown through a stream that is stopped because another one failed.
struct Stopped {};

// What is passed over in silence would be measured as if it had been done.
void refuse_unknown(const Op& op) {
  const auto refuse = [&](const char* what) {
    throw RunError(fmt::format("op \"{}\" {}, which real ranks do not support", op.name, what));
  };
  if (!op.signalled.empty()) refuse("signals other ranks");
  if (static_cast<std::size_t>(op.kind) >= kOpKindNames.size()) refuse("is of an unknown kind");
  if (op.kind == OpKind::collective &&
      static_cast<std::size_t>(op.collective.kind) >= kCollectiveNames.size())
    refuse("is an unknown collective");
  if (op.kind == OpKind::host && static_cast<std::size_t>(op.host_action) >= kHostActionNames.size())
    refuse("has an unknown action of the host");
  if (op.arithmetic) refuse("computes in simulated time");
}

class RankExecutor {
public:
  RankExecutor(const Schedule& schedule, const Program& program, Repetitions repetitions, Hardware& hardware,
               const std::function<void(const RankSpan&)>& on_span)
      : program_(program),
        index_(schedule, program),
        repetitions_(repetitions),
        hardware_(hardware),
        on_span_(on_span),
        ends_(program.ops.size()),
        done_(program.ops.size(), 0),
        streams_(program.streams.size()) {
    for (const Turn& turn : program.turns) turns_.push_back({turn.at_once, 0, 0});
    for (const Op& op : program.ops) refuse_unknown(op);
    for (std::size_t s = 0; s < streams_.size(); ++s) {
      streams_[s].cursor = StreamCursor(program, index_, static_cast<int>(s), repetitions.first);
      for (const int op : index_.stream_ops[s]) streams_[s].endless |= index_.per_step[op] == 0;
    }
  }

  std::vector<RankSpan> run() {
    std::vector<std::thread> threads;
    for (std::size_t s = 0; s < streams_.size(); ++s)
      threads.emplace_back([this, s] { guard(static_cast<int>(s)); });
    {
      // Streams that repeat endlessly stop when their senders announce that they send no more. This rank does
      // so for its own receivers once its other streams have sent everything.
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [&] { return failure_ || limited_ended(); });
    }
    if (!failure_ && repetitions_.last) finish();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    std::vector<RankSpan> spans;
    for (Stream& stream : streams_)
      for (const Recorded& r : stream.recorded)
        spans.push_back({r.call, hardware_.seconds(r.ready), hardware_.seconds(r.begin),
                         hardware_.seconds(r.end), r.sender});
    return spans;
  }

private:
  struct Recorded {
    OpCall call;
    Moment ready, begin, end;
    int sender = -1;
  };
  struct Stream {
    StreamCursor cursor;
    bool endless = false, ended = false;
    bool holding = false;  // waits for a counter
    int last_sender = -1;
    std::vector<Recorded> recorded;
    // While the stream waits: tells whether it can continue. Guarded by `mutex_`.
    const std::function<bool()>* can_continue = nullptr;
    std::condition_variable changed;
  };
  // Serves ops in the order in which they arrive.
  struct TurnState {
    int at_once = 1;
    long next = 0, served = 0;
  };

  bool limited_ended() const {
    for (const Stream& stream : streams_)
      if (!stream.endless && !stream.ended) return false;
    return true;
  }

  void finish() {
    try {
      hardware_.end_messages();
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void fail(std::exception_ptr failure) {
    std::string reason = "another stream has failed";
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      reason = error.what();
    } catch (...) {  // `reason` keeps its general text
    }
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::move(failure);
    }
    hardware_.abort(reason);
    std::unique_lock lock(mutex_);
    wake(lock);
    ended_.notify_one();
  }

  // Waits until `can_continue` holds or a stream fails; throws Stopped in the latter case.
  void wait(int number, std::unique_lock<std::mutex>& lock, const std::function<bool()>& can_continue) {
    Stream& stream = streams_[number];
    stream.can_continue = &can_continue;
    stream.changed.wait(lock, [&] { return failure_ || can_continue(); });
    stream.can_continue = nullptr;
    if (failure_) throw Stopped{};
  }

  // Wakes the streams that can continue; waking all of them after every op took more time than most small
  // ops. Unlocks before it wakes them, because they need the lock at once.
  void wake(std::unique_lock<std::mutex>& lock) {
    std::vector<Stream*> woken;
    for (Stream& stream : streams_)
      if (stream.can_continue && (failure_ || (*stream.can_continue)())) woken.push_back(&stream);
    lock.unlock();
    for (Stream* stream : woken) stream->changed.notify_one();
  }

  void guard(int number) {
    try {
      Stream& stream = streams_[number];
      try {
        while (stream.cursor.step() < repetitions_.end) {
          hardware_.begin_step(number);
          run_step(number);
          hardware_.end_step(number);
        }
        hardware_.settle(number);
      } catch (const StreamOver&) {
        hardware_.settle(number);
      }
    } catch (const Stopped&) {
    } catch (...) {
      fail(std::current_exception());
    }
    std::unique_lock lock(mutex_);
    streams_[number].ended = true;
    wake(lock);
    ended_.notify_one();
  }

  void run_step(int number) {
    StreamCursor& cursor = streams_[number].cursor;
    for (; !cursor.at_end(); cursor.advance()) switch (cursor.current().kind) {
        case OpKind::repeat_begin:
          wait_for_dependencies(number);
          end_op(cursor.op(), hardware_.mark(number));
          break;
        case OpKind::repeat_end:
          end_op(cursor.op(), hardware_.mark(number));
          break;
        default:
          run_op(number);
      }
    cursor.next_step();
  }

  void run_op(int number) {
    Stream& stream = streams_[number];
    const int op_number = stream.cursor.op();
    const Op& op = stream.cursor.current();
    wait_for_dependencies(number);
    Recorded r;
    r.call = {op_number, number, stream.cursor.step(), stream.cursor.iteration()};
    hardware_.prepare(r.call);
    r.ready = r.begin = hardware_.mark(number);
    bool turn_taken = false;
    const auto take_turn = [&] {
      if (op.turn < 0 || turn_taken) return;
      acquire(number, op.turn);
      turn_taken = true;
      r.begin = hardware_.mark(number);
    };
    switch (op.kind) {
      case OpKind::compute:
        take_turn();
        hardware_.compute(r.call);
        break;
      case OpKind::host:
        hardware_.host(r.call);
        break;
      case OpKind::exchange: {
        const Exchanged exchanged = hardware_.exchange(r.call, stream.last_sender, take_turn);
        if (exchanged.over) {
          if (turn_taken) release(op.turn);
          throw StreamOver{};
        }
        if (exchanged.sender >= 0) stream.last_sender = r.sender = exchanged.sender;
        break;
      }
      case OpKind::collective:
        hardware_.collective(r.call);
        break;
      case OpKind::signal:
        hardware_.settle(number);
        signal(stream.cursor.counter());
        break;
      case OpKind::wait_until:
        hardware_.settle(number);
        wait_until(number);
        break;
      case OpKind::repeat_begin:
      case OpKind::repeat_end:
        break;
    }
    if (turn_taken) hardware_.settle(number);
    r.end = hardware_.mark(number);
    if (turn_taken) release(op.turn);
    stream.recorded.push_back(r);
    end_op(op_number, r.end);
    if (on_span_ && r.end.event < 0)
      on_span_({r.call, r.ready.time_s, r.begin.time_s, r.end.time_s, r.sender});
  }

  void end_op(int op, const Moment& end) {
    std::unique_lock lock(mutex_);
    ++done_[op];
    ends_[op].push_back(end);
    wake(lock);
  }

  // Waits until `reached` holds. Throws StreamOver if it can no longer become true.
  template <class Reached, class Hopeless>
  void await(int number, std::unique_lock<std::mutex>& lock, Reached reached, Hopeless hopeless) {
    if (failure_) throw Stopped{};
    if (reached()) return;
    wait(number, lock, [&] { return reached() || hopeless(); });
    if (!reached()) throw StreamOver{};
  }

  void wait_for_dependencies(int number) {
    const StreamCursor& cursor = streams_[number].cursor;
    for (const Dependency& d : cursor.current().after) {
      const int its_stream = program_.ops[d.op].stream;
      std::unique_lock lock(mutex_);
      const long required = cursor.required(d, done_);
      if (required <= 0) continue;
      await(
          number, lock, [&] { return done_[d.op] >= required; }, [&] { return streams_[its_stream].ended; });
      if (its_stream == number) continue;
      // Use the end of the required run: asynchronous streams may already have issued later runs, which can
      // depend on this op.
      const Moment end = ends_[d.op][static_cast<std::size_t>(required) - 1];
      lock.unlock();
      hardware_.wait_for(number, end);
    }
  }

  void signal(const CounterAddress& counter) {
    std::unique_lock lock(mutex_);
    ++counters_[counter];
    wake(lock);
  }

  void wait_until(int number) {
    const StreamCursor& cursor = streams_[number].cursor;
    std::unique_lock lock(mutex_);
    if (cursor.reached(counters_)) return;
    streams_[number].holding = true;
    wake(lock);  // streams for which this one was the last that could raise their counter
    lock.lock();
    // Once all other streams have ended or wait for counters themselves, nobody can raise this counter.
    await(
        number, lock, [&] { return cursor.reached(counters_); },
        [&] {
          for (std::size_t s = 0; s < streams_.size(); ++s)
            if (static_cast<int>(s) != number && !streams_[s].ended && !streams_[s].holding) return false;
          return true;
        });
    streams_[number].holding = false;
  }

  void acquire(int number, int turn) {
    std::unique_lock lock(mutex_);
    TurnState& state = turns_[turn];
    const long ticket = state.next++;
    wait(number, lock, [&] { return ticket < state.served + state.at_once; });
  }

  void release(int turn) {
    std::unique_lock lock(mutex_);
    ++turns_[turn].served;
    wake(lock);
  }

  const Program& program_;
  const ProgramIndex index_;
  const Repetitions repetitions_;
  Hardware& hardware_;
  const std::function<void(const RankSpan&)>& on_span_;
  std::mutex mutex_;
  std::condition_variable ended_;          // a stream has ended
  std::vector<std::vector<Moment>> ends_;  // by op, then by its runs
  std::vector<long> done_;                 // by op: the number of its runs that have ended
  Counters counters_;
  std::vector<TurnState> turns_;
  std::vector<Stream> streams_;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<RankSpan> execute_rank(const Schedule& schedule, int role, int rank, int repeats,
                                   Hardware& hardware, const std::function<void(const RankSpan&)>& on_span) {
  return execute_rank(schedule, role, rank, Repetitions{0, repeats}, hardware, on_span);
}

std::vector<RankSpan> execute_rank(const Schedule& schedule, int role, int rank, Repetitions repetitions,
                                   Hardware& hardware, const std::function<void(const RankSpan&)>& on_span) {
  const int program = schedule.program_of(role, rank);
  if (program < 0) return {};
  return RankExecutor(schedule, schedule.programs[program], repetitions, hardware, on_span).run();
}

}  // namespace rehearse
