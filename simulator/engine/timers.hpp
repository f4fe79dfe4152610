// Runs what lasts days or weeks on SimGrid's clock: timers, each an actor that sleeps until its time. There
// are as many actors as timers are running.
#pragma once

#include <deque>
#include <functional>
#include <memory>

namespace rehearse {

class Timers {
public:
  struct Timer;
  using Handle = std::shared_ptr<Timer>;  // null: none
  // The clock is a double: after 10^10 s, the longest run, its next value is 2 us later. Times that differ by
  // less than this are the same.
  static constexpr double kPrecision_s = 1e-5;

  Timers();
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;
  ~Timers();

  // The time at which the present call was due. It never goes back: of calls that are due within 10 us of
  // each other, the earlier one may be made last, at the time of the later one.
  double now_s() const { return now_s_; }
  // Calls `call` at `time_s`; if that has come, after what is already due now. Calls are made one after the
  // other, never inside one another.
  Handle start(double time_s, std::function<void()> call);
  void stop(const Handle& timer);  // no effect on one whose time has come

private:
  friend void run_timers(const std::function<void(Timers&)>& begin);
  struct Clock;
  void sleep(const Handle& timer);
  void carry_out();

  double now_s_ = 0;
  // Timers whose actors are to be started or stopped. To ask SimGrid for that lets other actors run, so it
  // waits until the present call has ended.
  std::deque<Handle> asked_;
  std::unique_ptr<Clock> clock_;
};

// Calls `begin` at time 0, and returns when all timers have ended. Passes on what they throw. Like
// simulate(), it can be called only once per process.
void run_timers(const std::function<void(Timers&)>& begin);

}  // namespace rehearse
