#include "simulator/commands/tasks/ordered_tasks.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "simulator/commands/tasks/shared_results.hpp"

namespace rehearse {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMs = 100;
// Maximum number of tasks of other processes that are claimed again at a time, in case those processes have
// died.
constexpr int kMostTriedAgain = 64;

class OrderedRun {
public:
  explicit OrderedRun(const OrderedTasks& tasks) : tasks_(tasks), children_(tasks.work) {}
  OrderedRun(const OrderedRun&) = delete;
  OrderedRun& operator=(const OrderedRun&) = delete;
  ~OrderedRun() {  // after an exception, some children are left
    for (const std::int64_t task : children_.tasks()) stop(task);
  }

  void run() {
    for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kTickMs)) {
      if (hand_over()) pause_ms = 1;
      if (turn_ == tasks_.count) return;
      start_children();
      const std::vector<TaskEnd> ends = children_.wait(pause_ms);
      for (const TaskEnd& end : ends) take(end);
      if (tasks_.tick) tasks_.tick();
      if (ends.empty() && tasks_.results != nullptr) tasks_.results->refresh();
    }
  }

private:
  bool hand_over() {
    const std::int64_t before = turn_;
    for (; turn_ < tasks_.count; ++turn_) {
      if (tasks_.wanted(turn_)) {
        const std::string* known =
            tasks_.results != nullptr ? tasks_.results->find(tasks_.first + turn_) : nullptr;
        const auto ended = ended_.find(turn_);
        if (known == nullptr && ended == ended_.end()) {
          if (is_forgotten(turn_)) throw std::logic_error("a task was requested twice");
          break;
        }
        tasks_.taken(known != nullptr ? TaskEnd{turn_, *known, {}} : ended->second);
      }
      ended_.erase(turn_);
      elsewhere_.erase(turn_);
    }
    if (turn_ == before) return false;
    for (const std::int64_t task : children_.tasks())
      if (!tasks_.wanted(task)) stop(task);
    return true;
  }

  bool is_forgotten(std::int64_t task) const {
    const std::vector<std::int64_t> computed = children_.tasks();
    return task < ahead_ && elsewhere_.count(task) == 0 &&
           std::find(computed.begin(), computed.end(), task) == computed.end();
  }

  void start_children() {
    const bool try_again = Clock::now() - tried_ >= std::chrono::milliseconds(kTickMs);
    if (try_again) tried_ = Clock::now();
    int tries = try_again ? kMostTriedAgain : 0;
    for (auto next = elsewhere_.begin(); next != elsewhere_.end() && has_room() && tries > 0; --tries) {
      const std::int64_t task = *next;
      if (start(task)) elsewhere_.erase(task);
      next = elsewhere_.upper_bound(task);
    }
    for (ahead_ = std::max(ahead_, turn_); ahead_ < tasks_.count && has_room();
         ahead_ = std::max(ahead_ + 1, turn_))
      if (!start(ahead_)) elsewhere_.insert(ahead_);
  }

  bool has_room() const { return children_.size() < static_cast<std::size_t>(std::max(tasks_.jobs, 1)); }

  // Returns false if another process has claimed the task. Otherwise the task has been started, or need not
  // be.
  bool start(std::int64_t task) {
    SharedResults* results = tasks_.results;
    if (!tasks_.wanted(task)) return true;
    if (results != nullptr) {
      if (!results->claim(tasks_.first + task)) return results->find(tasks_.first + task) != nullptr;
      // Another process may have stopped the task because of results that this one has not handed over yet.
      if (hand_over() && !tasks_.wanted(task)) {
        results->release(tasks_.first + task);
        return true;
      }
    }
    children_.start(task);
    return true;
  }

  void stop(std::int64_t task) {
    children_.stop(task);
    if (tasks_.results != nullptr) tasks_.results->release(tasks_.first + task);
  }

  void take(const TaskEnd& end) {
    if (tasks_.results == nullptr) {
      ended_[end.task] = end;
    } else if (end.failure.empty()) {
      tasks_.results->add(tasks_.first + end.task, end.output);
    } else {
      ended_[end.task] = end;
      tasks_.results->release(tasks_.first + end.task);
    }
  }

  const OrderedTasks& tasks_;
  ChildTasks children_;
  std::int64_t turn_ = 0;                   // first task that has been neither handed over nor dropped
  std::int64_t ahead_ = 0;                  // first task for which start() has not been called
  std::set<std::int64_t> elsewhere_;        // tasks before `ahead_` that other processes held when last tried
  std::map<std::int64_t, TaskEnd> ended_;   // ended by a child of this process, and not in the file
  Clock::time_point tried_ = Clock::now();  // when tasks of other processes were last tried
};

}  // namespace

void run(const OrderedTasks& tasks) {
  OrderedRun(tasks).run();
}

}  // namespace rehearse
