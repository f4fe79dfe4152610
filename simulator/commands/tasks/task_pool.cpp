#include "simulator/commands/tasks/task_pool.hpp"

namespace rehearse {
namespace {

constexpr int kWaitMs = 100;

}  // namespace

void run(const TaskPool& pool) {
  ChildTasks children(pool.work);
  for (bool more = true; more || children.size() > 0;) {
    while (more && children.size() < static_cast<std::size_t>(pool.jobs)) {
      const std::int64_t task = pool.next();
      more = task >= 0;
      if (more) children.start(task);
    }
    if (children.size() > 0)
      for (const TaskEnd& end : children.wait(kWaitMs)) pool.ended(end);
    pool.tick();
  }
}

}  // namespace rehearse
