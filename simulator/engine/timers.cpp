#include "simulator/engine/timers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "simulator/engine/platform.hpp"

namespace rehearse {

struct Timers::Timer {
  double time_s = 0;
  std::function<void()> call;
  sg::s4u::ActorPtr actor;  // null: not started yet, or its time has come
  bool started = false, stopped = false;
};

struct Timers::Clock {
  // Timers that are stopped stop their actors (sanitized_stacks.hpp).
  sg::s4u::Engine engine = make_engine(sg::kSanitized);
  sg::s4u::Host* home = nullptr;
  std::exception_ptr thrown;
};

Timers::Timers() : clock_(std::make_unique<Clock>()) {
  sg::configure();
  // SimGrid loses an event that rounding puts before the clock by more than this.
  sg::s4u::Engine::set_config(fmt::format("surf/precision:{}", kPrecision_s));
  sg::s4u::NetZone* zone = sg::root_zone(clock_->engine);
  clock_->home = sg::add_host(zone, "home");
  zone->seal();
}

Timers::~Timers() = default;

Timers::Handle Timers::start(double time_s, std::function<void()> call) {
  const auto timer = std::make_shared<Timer>();
  timer->time_s = std::max(time_s, now_s_);
  timer->call = std::move(call);
  asked_.push_back(timer);
  return timer;
}

void Timers::stop(const Handle& timer) {
  if (timer == nullptr || timer->stopped) return;
  timer->stopped = true;
  timer->call = {};
  if (timer->actor) asked_.push_back(timer);
}

void Timers::carry_out() {
  while (!asked_.empty()) {
    const Handle timer = std::move(asked_.front());
    asked_.pop_front();
    if (!timer->started && !timer->stopped) {
      timer->started = true;
      const sg::s4u::ActorPtr actor =
          sg::start_actor(clock_->engine, "timer", clock_->home, [this, timer] { sleep(timer); });
      if (timer->call) timer->actor = actor;  // else its time has come meanwhile, or it was stopped
      if (timer->stopped) actor->kill();
    } else if (timer->actor) {
      std::exchange(timer->actor, nullptr)->kill();
    }
  }
}

void Timers::sleep(const Handle& timer) {
  const double wait_s = timer->time_s - sg::s4u::Engine::get_clock();
  if (wait_s > kPrecision_s / 2) sg::s4u::this_actor::sleep_for(wait_s);
  timer->actor = nullptr;
  if (timer->stopped || clock_->thrown) return;
  now_s_ = std::max(now_s_, timer->time_s);
  const std::function<void()> call = std::exchange(timer->call, nullptr);
  try {
    call();
  } catch (...) {
    clock_->thrown = std::current_exception();
    return;  // and so do all others, at their times
  }
  carry_out();
}

void run_timers(const std::function<void(Timers&)>& begin) {
  Timers timers;
  timers.start(0, [&] { begin(timers); });
  timers.carry_out();
  timers.clock_->engine.run();
  sg::tell_stack_of_process();
  if (timers.clock_->thrown) std::rethrow_exception(timers.clock_->thrown);
}

}  // namespace rehearse
