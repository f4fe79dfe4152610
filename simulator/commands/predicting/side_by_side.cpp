#include "simulator/commands/predicting/side_by_side.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "models/text/error.hpp"
#include "simulator/commands/tasks/task_pool.hpp"

namespace rehearse {

int processors() {
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::vector<double> step_times(const std::vector<std::function<double()>>& runs, int jobs,
                               const std::function<void(std::size_t, std::size_t)>& ended) {
  std::vector<double> times_s(runs.size(), 0);
  if (runs.empty()) return times_s;
  std::int64_t next = 0;
  std::size_t count = 0;
  TaskPool pool;
  pool.jobs = jobs;
  pool.next = [&] { return next < static_cast<std::int64_t>(runs.size()) ? next++ : -1; };
  pool.work = [&](std::int64_t task) {
    const double time_s = runs[static_cast<std::size_t>(task)]();
    std::string bytes(sizeof time_s, '\0');
    std::memcpy(bytes.data(), &time_s, sizeof time_s);
    return bytes;
  };
  pool.ended = [&](const TaskEnd& end) {
    if (end.output.size() != sizeof(double)) throw RunError("a changed scenario failed: " + end.failure);
    std::memcpy(&times_s[static_cast<std::size_t>(end.task)], end.output.data(), sizeof(double));
    ++count;
  };
  pool.tick = [&] {
    if (ended) ended(count, runs.size());
  };
  run(pool);
  return times_s;
}

}  // namespace rehearse
