#include "simulator/trace/live_tensors.hpp"

#include <algorithm>
#include <limits>

#include "simulator/trace/rows.hpp"

namespace rehearse {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The uses of a tensor in a step, and the ops that are the first and the last of them.
struct Uses {
  double first_write_s = kNever, first_read_s = kNever, last_s = -kNever;
  int first_writer = -1, last_user = -1;

  void written(int op, double begin_s, double end_s) {
    if (begin_s < first_write_s) {
      first_write_s = begin_s;
      first_writer = op;
    }
    used(op, end_s);
  }
  void read(int op, double begin_s, double end_s) {
    first_read_s = std::min(first_read_s, begin_s);
    used(op, end_s);
  }
  bool any() const { return last_user >= 0; }

private:
  void used(int op, double end_s) {
    if (end_s <= last_s) return;
    last_s = end_s;
    last_user = op;
  }
};

}  // namespace

LiveTensors live_tensors(const Trace& trace, int rank_class, int step, TensorMemory memory) {
  LiveTensors live;
  const auto [first, last] = rows_of_class(trace, rank_class);
  const Spans& spans = trace.spans;
  const Role* role = nullptr;
  std::vector<Uses> uses;
  live.begin_s = kNever;
  live.end_s = -kNever;
  for (std::size_t row = first; row < last; ++row) {
    if (spans.step[row] != step) continue;
    if (live.program == nullptr) {
      live.program = &trace.program_of(row);
      role = &schedule_of(trace, row).roles[trace.classes[rank_class].role];
      uses.resize(live.program->tensors.size());
    }
    live.begin_s = std::min(live.begin_s, spans.ready_s[row]);
    live.end_s = std::max(live.end_s, spans.end_s[row]);
    const int number = spans.op[row];
    const Op& op = live.program->ops[number];
    for (const int tensor : op.writes) uses[tensor].written(number, spans.begin_s[row], spans.end_s[row]);
    for (const int tensor : op.reads) uses[tensor].read(number, spans.begin_s[row], spans.end_s[row]);
  }
  if (live.program == nullptr) return {};
  const int rank = trace.classes[rank_class].ranks.front();
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Tensor& tensor = live.program->tensors[i];
    if (tensor.memory != memory || (!tensor.persistent() && !uses[i].any())) continue;
    LiveTensor one{static_cast<int>(i), tensor.bytes.at(*role, rank), tensor.persistent(), live.begin_s,
                   live.end_s};
    if (!one.persistent) {
      const Uses& its = uses[i];
      const bool from_before = its.first_read_s < its.first_write_s;
      if (!from_before) one.born_s = its.first_write_s;
      if (!from_before) one.born_in = its.first_writer;
      one.freed_s = its.last_s;
      one.freed_in = its.last_user;
    }
    live.tensors.push_back(one);
  }
  return live;
}

}  // namespace rehearse
