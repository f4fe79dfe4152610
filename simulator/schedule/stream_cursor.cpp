#include "simulator/schedule/stream_cursor.hpp"

namespace rehearse {

StreamCursor::StreamCursor(const Program& program, const ProgramIndex& index, int stream, int step)
    : program_(&program), index_(&index), ops_(&index.stream_ops[stream]), step_(step) {}

void StreamCursor::advance() {
  const int number = op();
  ++next_;
  if (program_->ops[number].kind == OpKind::repeat_begin) {
    iterations_.push_back(0);
  } else if (program_->ops[number].kind == OpKind::repeat_end) {
    const int begin = index_->partner[number], count = program_->ops[begin].count;
    if (count == 0 || iterations_.back() + 1 < count) {
      ++iterations_.back();
      next_ = static_cast<std::size_t>(index_->position[begin]) + 1;
    } else {
      iterations_.pop_back();
    }
  }
}

void StreamCursor::next_step() {
  next_ = 0;
  ++step_;
}

long StreamCursor::required(const Dependency& dependency, const std::vector<long>& done) const {
  return index_->required(op(), dependency, done[op()] + 1);
}

const Dependency* StreamCursor::unmet(const std::vector<long>& done) const {
  for (const Dependency& dependency : current().after)
    if (done[dependency.op] < required(dependency, done)) return &dependency;
  return nullptr;
}

double StreamCursor::awaited_value() const {
  return current().at_least + current().at_least_per_iteration * iteration();
}

bool StreamCursor::reached(const Counters& counters) const {
  const CounterAddress address = counter();
  if (address.second < 0) return true;  // of an iteration before the first
  const auto it = counters.find(address);
  return (it == counters.end() ? 0 : it->second) >= awaited_value();
}

}  // namespace rehearse
