// Sorts the operators of a trace by thread: which of them are outermost, and which outer operator contains
// the others.
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

// Returns the union of these intervals, sorted and without overlaps.
std::vector<Interval> united(std::vector<Interval> intervals);
// Returns how long `of` is covered by `intervals`, which are sorted and do not overlap.
double covered(Interval of, const std::vector<Interval>& intervals);
// Returns those intervals that overlap `of`.
std::vector<Interval> overlapping(Interval of, const std::vector<Interval>& intervals);
// Returns the parts of `of` that these intervals do not cover.
std::vector<Interval> without(Interval of, const std::vector<Interval>& intervals);

// An operator that is not nested in another one.
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

  // Returns the outer operators of one thread, in order of time.
  const std::vector<OuterOp>& of_thread(std::uint32_t thread) const;
  // Returns the outer operator at a time; nullptr if there is none.
  const OuterOp* at(std::uint32_t thread, double time) const;
  // Returns the evaluations of nodes of the backward pass on all threads, by time.
  const std::vector<OuterOp>& backward() const { return backward_; }
  // Returns the index (in of_thread()) of the thread's outer operator that created the autograd node with
  // this sequence number; -1 if unknown.
  int maker_of(std::uint32_t thread, std::int64_t sequence) const;

  struct Annotation {
    Interval time;
    std::uint32_t thread = 0, name = 0;
  };
  // Annotations by time.
  const std::vector<Annotation>& annotations() const { return annotations_; }
  // Calls of modules by time.
  const std::vector<Annotation>& modules() const { return modules_; }
  // Times during which collectives run, on any thread; and calls that issue them, on the threads of
  // operators.
  const std::vector<Interval>& collectives() const { return collectives_; }
  // Of them, those that the processor carries out. NCCL's run as kernels, and what the trace shows of them on
  // a host thread only issues these.
  const std::vector<Interval>& host_collectives() const { return host_collectives_; }
  const std::vector<Interval>& collective_calls() const { return collective_calls_; }

private:
  void add_ops(const ProfilerTrace& trace, std::vector<std::vector<std::uint32_t>>& by_thread);
  std::vector<std::vector<OuterOp>> outer_;
  std::vector<OuterOp> backward_;
  std::vector<std::unordered_map<std::int64_t, int>> makers_;
  std::vector<Annotation> annotations_, modules_;
  std::vector<Interval> collectives_, host_collectives_, collective_calls_;
};

// Returns whether the kernel belongs to NCCL or RCCL.
bool is_collective_kernel(std::string_view name);

}  // namespace rehearse
