#include "simulator/engine/concurrency.hpp"

#include <algorithm>

namespace rehearse {
namespace {

// A vector clock over the ops of two successive repetitions of a program: for each op, how much of each
// stream has certainly ended when the op begins.
class Clocks {
public:
  Clocks(const Program& program, const ProgramIndex& index)
      : program_(program),
        index_(index),
        ops_(program.ops.size()),
        streams_(program.streams.size()),
        at_begin_(2 * ops_ * streams_, 0) {
    std::vector<std::vector<int>> ended_on(streams_,
                                           std::vector<int>(streams_, 0));  // after each stream's last op
    for (std::size_t n = 0; n < 2 * ops_; ++n) {
      const Op& op = program.ops[n % ops_];
      std::vector<int>& clock = ended_on[op.stream];
      for (const Dependency& d : op.after) {
        // Dependencies on ops later in the program are not counted: less is then known to have ended.
        const std::size_t copy = n / ops_;
        if (d.steps_back > 0 && copy == 0) continue;
        const std::size_t awaited =
            static_cast<std::size_t>(d.op) + (copy - (d.steps_back > 0 ? 1 : 0)) * ops_;
        if (awaited >= n) continue;
        for (std::size_t s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], begin(awaited)[s]);
        int& own = clock[program.ops[d.op].stream];
        own = std::max(own, position(awaited) + 1);
      }
      std::copy(clock.begin(), clock.end(), at_begin_.begin() + static_cast<std::ptrdiff_t>(n * streams_));
      clock[op.stream] = position(n) + 1;
    }
  }

  // Returns whether neither op has certainly ended when the other begins.
  bool may_overlap(std::size_t a, std::size_t b) const {
    return begin(a)[stream(b)] <= position(b) && begin(b)[stream(a)] <= position(a);
  }
  int ended_before(std::size_t n, std::size_t stream) const { return begin(n)[stream]; }
  int position(std::size_t n) const {  // in its stream, counted across both repetitions
    const std::size_t op = n % ops_;
    const auto length = static_cast<int>(index_.stream_ops[program_.ops[op].stream].size());
    return index_.position[op] + (n < ops_ ? 0 : length);
  }

private:
  const int* begin(std::size_t n) const { return at_begin_.data() + n * streams_; }
  std::size_t stream(std::size_t n) const { return static_cast<std::size_t>(program_.ops[n % ops_].stream); }

  const Program& program_;
  const ProgramIndex& index_;
  std::size_t ops_, streams_;
  std::vector<int> at_begin_;
};

bool repeats(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [](const Op& op) { return op.kind == OpKind::repeat_begin; });
}

}  // namespace

std::vector<bool> computes_beside_collectives(const Program& program, const ProgramIndex& index) {
  const std::size_t ops = program.ops.size(), streams = program.streams.size();
  const auto is = [&](std::size_t op, OpKind kind) { return program.ops[op].kind == kind; };
  std::vector<bool> beside(ops, false);
  if (repeats(program)) {
    for (std::size_t op = 0; op < ops; ++op)
      beside[op] = is(op, OpKind::compute) || is(op, OpKind::collective);
    return beside;
  }
  const Clocks clocks(program, index);
  // Returns the ops of a kind by stream, in both repetitions.
  const auto ops_of = [&](OpKind kind) {
    std::vector<std::vector<std::size_t>> of_stream(streams);
    for (std::size_t n = 0; n < 2 * ops; ++n)
      if (is(n % ops, kind)) of_stream[static_cast<std::size_t>(program.ops[n % ops].stream)].push_back(n);
    return of_stream;
  };
  const auto mark = [&](OpKind marked, const std::vector<std::vector<std::size_t>>& others) {
    for (std::size_t n = 0; n < 2 * ops; ++n) {
      if (!is(n % ops, marked)) continue;
      for (std::size_t s = 0; s < streams; ++s) {
        if (s == static_cast<std::size_t>(program.ops[n % ops].stream)) continue;
        // The first op that has not ended before: later ones on its stream begin no earlier.
        const auto first =
            std::lower_bound(others[s].begin(), others[s].end(), clocks.ended_before(n, s),
                             [&](std::size_t other, int ended) { return clocks.position(other) < ended; });
        if (first != others[s].end() && clocks.may_overlap(n, *first)) beside[n % ops] = true;
      }
    }
  };
  const auto computing = ops_of(OpKind::compute), collectives = ops_of(OpKind::collective);
  mark(OpKind::compute, collectives);
  mark(OpKind::collective, computing);
  return beside;
}

}  // namespace rehearse
