// The operators of a trace by thread: which of them are outermost, and in which of these others lie.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/profiler/profiler_trace.hpp"

namespace rehearse {

struct Interval {
  double begin = 0, end = 0;
  double length() const { return end > begin ? end - begin : 0; }
};

// The union of these intervals: sorted, without overlaps.
std::vector<Interval> united(std::vector<Interval> intervals);
// How long `of` is covered by `intervals`, which are sorted and do not overlap.
double covered(Interval of, const std::vector<Interval>& intervals);

// An operator that lies in no other.
struct OuterOp {
  std::uint32_t event = 0;
  std::uint32_t thread = 0;
  double begin = 0, end = 0;
  bool is_backward = false;  // evaluates a node of the backward pass
  // Totals over the AccumulateGrad nodes inside this op.
  double parameters = 0, gradient_bytes = 0;
  bool accumulates = false;
};

class HostOps {
public:
  explicit HostOps(const ProfilerTrace& trace);

  // Of one thread, in order of time.
  const std::vector<OuterOp>& of_thread(std::uint32_t thread) const;
  // The outer operator at a time; nullptr if there is none.
  const OuterOp* at(std::uint32_t thread, double time) const;
  // Evaluations of nodes of the backward pass, on all threads, by time.
  const std::vector<OuterOp>& backward() const { return backward_; }
  // In which outer operator of the thread the autograd node of that number was made: its index among those of
  // the thread; -1: not known.
  int maker_of(std::uint32_t thread, std::int64_t sequence) const;

  struct Annotation {
    Interval time;
    std::uint32_t thread = 0, name = 0;
  };
  // By time.
  const std::vector<Annotation>& annotations() const { return annotations_; }
  // Calls of modules, by time.
  const std::vector<Annotation>& modules() const { return modules_; }
  // Collectives under way, on whichever thread; and calls that issue them, on the threads of operators.
  const std::vector<Interval>& collectives() const { return collectives_; }
  const std::vector<Interval>& collective_calls() const { return collective_calls_; }

private:
  void add_ops(const ProfilerTrace& trace, std::vector<std::vector<std::uint32_t>>& by_thread);
  std::vector<std::vector<OuterOp>> outer_;
  std::vector<OuterOp> backward_;
  std::vector<std::unordered_map<std::int64_t, int>> makers_;
  std::vector<Annotation> annotations_, modules_;
  std::vector<Interval> collectives_, collective_calls_;
};

// Kernels of NCCL and its relatives.
bool is_collective_kernel(std::string_view name);

}  // namespace rehearse
