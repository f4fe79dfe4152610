#include "simulator/profiler/host_ops.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// Names that torch/csrc/autograd/engine.cpp and accumulate_grad.h of pytorch/pytorch give to nodes.
constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";

// "gloo:all_reduce" and "nccl:all_gather" run on separate threads; the calls below only start a collective.
bool is_collective_call(std::string_view name) {
  return name.starts_with("c10d::") || name == "record_param_comms";
}
bool is_collective(std::string_view name) {
  return name.starts_with("gloo:") || name.starts_with("mpi:") || name.starts_with("nccl:");
}

}  // namespace

bool is_collective_kernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl");
}

std::vector<Interval> united(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> result;
  for (const Interval& one : intervals) {
    if (!result.empty() && one.begin <= result.back().end)
      result.back().end = std::max(result.back().end, one.end);
    else
      result.push_back(one);
  }
  return result;
}

namespace {

// Returns the first of these intervals that ends after a time.
std::vector<Interval>::const_iterator first_after(double time, const std::vector<Interval>& intervals) {
  return std::lower_bound(intervals.begin(), intervals.end(), time,
                          [](const Interval& one, double at) { return one.end <= at; });
}

}  // namespace

double covered(Interval of, const std::vector<Interval>& intervals) {
  double sum = 0;
  for (auto it = first_after(of.begin, intervals); it != intervals.end() && it->begin < of.end; ++it)
    sum += Interval{std::max(it->begin, of.begin), std::min(it->end, of.end)}.length();
  return sum;
}

std::vector<Interval> overlapping(Interval of, const std::vector<Interval>& intervals) {
  std::vector<Interval> found;
  for (auto it = first_after(of.begin, intervals); it != intervals.end() && it->begin < of.end; ++it)
    found.push_back(*it);
  return found;
}

std::vector<Interval> without(Interval of, const std::vector<Interval>& intervals) {
  std::vector<Interval> left;
  for (auto it = first_after(of.begin, intervals); it != intervals.end() && it->begin < of.end; ++it) {
    if (it->begin > of.begin) left.push_back({of.begin, it->begin});
    of.begin = it->end;
  }
  if (of.length() > 0) left.push_back(of);
  return left;
}

HostOps::HostOps(const ProfilerTrace& trace) {
  std::vector<std::vector<std::uint32_t>> by_thread;
  for (std::uint32_t i = 0; i < trace.events.size(); ++i) {
    const ProfilerEvent& event = trace.events[i];
    const std::string& name = trace.names[event.name];
    if (event.thread >= by_thread.size()) by_thread.resize(event.thread + 1);
    const Interval time{event.begin_us, event.end_us};
    if (event.kind == ProfilerEventKind::module) modules_.push_back({time, event.thread, event.name});
    if (event.kind != ProfilerEventKind::op && event.kind != ProfilerEventKind::annotation) continue;
    if (is_collective(name)) {
      collectives_.push_back(time);
      if (!name.starts_with("nccl:")) host_collectives_.push_back(time);
    } else if (event.kind == ProfilerEventKind::annotation) {
      annotations_.push_back({time, event.thread, event.name});
    } else {
      if (is_collective_call(name)) collective_calls_.push_back(time);
      by_thread[event.thread].push_back(i);
    }
  }
  const auto by_time = [](const Annotation& a, const Annotation& b) { return a.time.begin < b.time.begin; };
  std::sort(annotations_.begin(), annotations_.end(), by_time);
  std::sort(modules_.begin(), modules_.end(), by_time);
  collectives_ = united(std::move(collectives_));
  host_collectives_ = united(std::move(host_collectives_));
  collective_calls_ = united(std::move(collective_calls_));
  add_ops(trace, by_thread);
}

void HostOps::add_ops(const ProfilerTrace& trace, std::vector<std::vector<std::uint32_t>>& by_thread) {
  outer_.resize(by_thread.size());
  makers_.resize(by_thread.size());
  for (std::uint32_t t = 0; t < by_thread.size(); ++t) {
    std::sort(by_thread[t].begin(), by_thread[t].end(), [&](std::uint32_t a, std::uint32_t b) {
      const ProfilerEvent &x = trace.events[a], &y = trace.events[b];
      return x.begin_us != y.begin_us ? x.begin_us < y.begin_us : x.end_us > y.end_us;
    });
    std::vector<OuterOp>& outer = outer_[t];
    for (const std::uint32_t i : by_thread[t]) {
      const ProfilerEvent& event = trace.events[i];
      const std::string& name = trace.names[event.name];
      if (outer.empty() || event.begin_us >= outer.back().end)
        outer.push_back({i, t, event.begin_us, event.end_us, name.starts_with(kEvaluate)});
      OuterOp& its = outer.back();
      // The node itself, nested in its evaluation; its first input is the gradient.
      if (name == kAccumulate) {
        its.accumulates = true;
        if (event.elements > 0) {
          its.parameters += event.elements;
          its.gradient_bytes += event.elements * event.element_bytes;
        }
      }
      // Operators carry the sequence number of the next autograd node; the last operator with a number
      // creates the node.
      if (event.sequence >= 0 && !event.backward && !its.is_backward)
        makers_[t][event.sequence] = static_cast<int>(outer.size()) - 1;
    }
    for (const OuterOp& op : outer)
      if (op.is_backward) backward_.push_back(op);
  }
  std::sort(backward_.begin(), backward_.end(),
            [](const OuterOp& a, const OuterOp& b) { return a.begin < b.begin; });
}

const std::vector<OuterOp>& HostOps::of_thread(std::uint32_t thread) const {
  static const std::vector<OuterOp> kNone;
  return thread < outer_.size() ? outer_[thread] : kNone;
}

const OuterOp* HostOps::at(std::uint32_t thread, double time) const {
  const std::vector<OuterOp>& ops = of_thread(thread);
  auto it = std::upper_bound(ops.begin(), ops.end(), time,
                             [](double at, const OuterOp& op) { return at < op.begin; });
  if (it == ops.begin()) return nullptr;
  --it;
  return time < it->end ? &*it : nullptr;
}

int HostOps::maker_of(std::uint32_t thread, std::int64_t sequence) const {
  if (thread >= makers_.size()) return -1;
  const auto it = makers_[thread].find(sequence);
  return it == makers_[thread].end() ? -1 : it->second;
}

}  // namespace rehearse
