#include "simulator/strategies/programs/overlap.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "simulator/strategies/orders/pass_pairs.hpp"
#include "simulator/strategies/programs/op_parts.hpp"

namespace rehearse {
namespace {

// An op of the new program. `op.after` refers to ops of the old program, `after` to ops of the new one.
struct NewOp {
  Op op;
  std::vector<int> after;
};

bool sums(const Op& op) {
  return op.collective.kind == CollectiveKind::all_reduce ||
         op.collective.kind == CollectiveKind::reduce_scatter;
}

// Segments [first, end) of the walk.
struct Segments {
  int first = 0, end = 0;
  bool empty() const { return first >= end; }
};

class Rewriter {
public:
  // `first_ops`: the first op of each pass, and the index after the last one; `pairs`: by pass, whether it
  // takes turns with the next one. Both are empty if passes do not take turns.
  Rewriter(StepPlan& plan, Program& program, const std::vector<int>& first_ops,
           const std::vector<bool>& pairs)
      : plan_(plan),
        walk_(plan.walk),
        program_(program),
        first_ops_(first_ops),
        pairs_(pairs),
        compute_stream_(stream_named(program, "compute")),
        mode_(plan.scenario.strategy.tensor_overlap),
        chunks_(plan.scenario.strategy.tensor_chunks) {}

  void rewrite() {
    old_ = std::move(program_.ops);
    new_.reserve(old_.size());
    became_.assign(old_.size(), -1);
    std::size_t pass = 0;
    for (at_ = 0; at_ < static_cast<int>(old_.size()); ++at_) {
      for (; pass < first_ops_.size() && first_ops_[pass] == at_; ++pass) begin_pass(pass);
      if (became_[at_] < 0) visit();
    }
    for (; pass < first_ops_.size(); ++pass) begin_pass(pass);
    for (NewOp& op : new_) {
      for (Dependency& on : op.op.after) on.op = became_[on.op];
      for (const int on : op.after) op.op.after.push_back({on});
    }
    place_in_order();
  }

private:
  // ----- which ops change

  bool moves(const Op& op) const {
    return op.stream == compute_stream_ && op.action.kind == Action::Kind::change;
  }
  bool overlaps_tensor(const Op& op) const {
    return mode_ != TensorOverlap::none && op.action.kind == Action::Kind::change &&
           op.purpose == Purpose::tensor;
  }
  // Returns the next op on the compute stream after op `from`; null if there is none.
  Op* next_on_compute(int from) {
    for (int i = from + 1; i < static_cast<int>(old_.size()); ++i)
      if (old_[i].stream == compute_stream_) return &old_[i];
    return nullptr;
  }

  static bool forwards(const Op& op) { return op.pass == Pass::forward || op.pass == Pass::recompute; }
  static bool backwards(const Op& op) { return op.pass == Pass::backward || op.pass == Pass::backward_input; }

  // Returns whether the segment is a product whose rows are tokens, so that it can be computed for some of
  // them at a time.
  bool rows_are_tokens(int segment) const {
    constexpr std::array kKinds = {SegmentKind::query, SegmentKind::key_value, SegmentKind::projection,
                                   SegmentKind::up, SegmentKind::down};
    return std::find(kKinds.begin(), kKinds.end(), walk_.segments[segment]->kind) != kKinds.end();
  }
  // Returns the leading segments of `compute` that read the changed tensor; empty if it begins with other
  // segments.
  Segments readers(const Op& change, const Op& compute) const {
    const ValueRoute& route = walk_.routes[change.action.route];
    if (route.first != compute.action.first_segment || route.last >= compute.action.end_segment) return {};
    return {route.first, route.last + 1};
  }
  // Returns the last segment of `compute` if it produces the changed tensor; otherwise empty.
  Segments maker(const Op& change, const Op& compute) const {
    const int last = compute.action.end_segment - 1;
    const std::vector<int>& made = walk_.segments[last]->outputs;
    const bool makes = walk_.layer_of[last] == change.first_layer &&
                       std::find(made.begin(), made.end(), change.action.part) != made.end();
    return makes ? Segments{last, last + 1} : Segments{};
  }
  bool in_chunks(const Segments& segments) const {
    if (mode_ != TensorOverlap::chunks || segments.empty()) return false;
    for (int s = segments.first; s < segments.end; ++s)
      if (!rows_are_tokens(s)) return false;
    return true;
  }

  // Returns the segments of `compute` that can be computed chunk by chunk as `gather` delivers their input.
  Segments begins_in_chunks(const Op& gather, const Op& compute) const {
    if (compute.kind != OpKind::compute || gather.collective.kind != CollectiveKind::all_gather ||
        !overlaps_tensor(gather))
      return {};
    Segments segments;
    if (forwards(compute) && !gather.action.of_gradient) segments = readers(gather, compute);
    if (backwards(compute) && gather.action.of_gradient) segments = maker(gather, compute);
    return in_chunks(segments) ? segments : Segments{};
  }

  // ----- the new ops

  int place(Op op, std::vector<int> after) {
    new_.push_back({std::move(op), std::move(after)});
    return static_cast<int>(new_.size()) - 1;
  }
  // Places an op on the compute stream, after all ops that it must wait for.
  int compute(Op op, bool for_weights = true) {
    std::vector<int> after = std::move(awaited_);
    awaited_.clear();
    op.after.insert(op.after.end(), inherited_.begin(), inherited_.end());
    inherited_.clear();
    if (for_weights) {
      after.insert(after.end(), awaited_by_weights_.begin(), awaited_by_weights_.end());
      awaited_by_weights_.clear();
    }
    return computed_ = place(std::move(op), std::move(after));
  }
  // Returns the ops that must end before the next communication begins.
  std::vector<int> before_communication() const {
    std::vector<int> before = awaited_;
    if (computed_ >= 0) before.push_back(computed_);
    return before;
  }
  int communicate(Op op) { return communicate(std::move(op), before_communication()); }
  int communicate(Op op, std::vector<int> after) {
    op.stream = stream_named(program_, "layers");
    // Transformer Engine's user buffers are exchanged by copy engines.
    op.collective.copy_engines = mode_ == TensorOverlap::chunks && overlaps_tensor(op);
    return place(std::move(op), std::move(after));
  }

  void visit() {
    Op& op = old_[at_];
    if (op.stream != compute_stream_) {
      became_[at_] = place(std::move(op), {});
      return;
    }
    if (moves(op)) {
      const Op* next = next_on_compute(at_);
      if (next && !begins_in_chunks(op, *next).empty()) {
        gather_ = at_;  // written together with that op
        return;
      }
      // The backward pass gathers inputs again for the gradients of weights; attention needs them
      // immediately.
      const bool for_weights =
          !op.action.of_gradient && next && backwards(*next) &&
          walk_.segments[walk_.routes[op.action.route].last]->kind != SegmentKind::attention;
      // Later ops on the compute stream relied on this op's dependencies, so the next one inherits them.
      if (for_weights) inherited_.insert(inherited_.end(), op.after.begin(), op.after.end());
      const int number = became_[at_] = communicate(std::move(op));
      if (for_weights)
        awaited_by_weights_.push_back(number);
      else
        awaited_ = {number};
      return;
    }
    if (op.kind == OpKind::compute && op.action.end_segment > op.action.first_segment && op.action.part == 0)
      became_[at_] = cut(op);
    else
      became_[at_] = compute(std::move(op));
  }

  // Computes these segments in chunks, each after its chunk of `gather` and before its chunk of `sum`.
  int compute_chunks(const Op& whole, Pass pass, const Segments& segments, Op* gather, Op* sum) {
    int number = -1;
    const Op part = part_of_op(plan_, whole, pass, segments.first, segments.end, chunks_);
    std::vector<int> before_gather = before_communication();
    for (int c = 0; c < chunks_; ++c) {
      if (gather) {
        const int brought = communicate(chunk_of(*gather, c, chunks_), std::exchange(before_gather, {}));
        awaited_ = {brought};
      }
      number = compute(chunk_of(part, c, chunks_), false);
      if (sum) {
        const int summed = communicate(chunk_of(*sum, c, chunks_));
        if (c == chunks_ - 1) awaited_ = {summed};
      }
    }
    return number;
  }
  int compute_part(const Op& whole, Pass pass, const Segments& segments) {
    return compute(part_of_op(plan_, whole, pass, segments.first, segments.end),
                   pass != Pass::backward_input);
  }

  // Splits a compute op so that the communication before or after it overlaps with parts of it.
  int cut(Op& op) {
    Op* gather = gather_ >= 0 ? &old_[gather_] : nullptr;
    Op* sum = next_on_compute(at_);
    if (sum && !(moves(*sum) && overlaps_tensor(*sum) && sums(*sum))) sum = nullptr;
    Segments first, last, middle = {op.action.first_segment, op.action.end_segment};
    const bool whole_backward = op.pass == Pass::backward;
    if (forwards(op)) {
      if (gather) first = begins_in_chunks(*gather, op);
      if (sum && !sum->action.of_gradient) last = maker(*sum, op);
      if (!in_chunks(last) || last.first < first.end) last = {};
    } else if (backwards(op)) {
      if (gather) first = begins_in_chunks(*gather, op);
      if (sum && sum->action.of_gradient && whole_backward) last = readers(*sum, op);
      if (!has_weights(last) || (!first.empty() && first.first < last.end)) last = {};
    }
    if (first.empty() && last.empty()) return compute(std::move(op));

    int number = -1;
    if (!first.empty()) {
      const Pass pass = whole_backward ? Pass::backward_input : op.pass;
      number = compute_chunks(op, pass, first, gather, nullptr);
      became_[gather_] = number - 1;  // the communication of its last chunk
      gather_ = -1;
      op.after.clear();
      if (whole_backward && has_weights(first)) number = compute_part(op, Pass::backward_weight, first);
      (forwards(op) ? middle.first : middle.end) = forwards(op) ? first.end : first.first;
    }
    if (!last.empty()) (forwards(op) ? middle.end : middle.first) = forwards(op) ? last.first : last.end;
    if (!middle.empty()) {
      number = compute_part(op, op.pass, middle);
      op.after.clear();
    }
    if (last.empty()) return number;
    const auto sum_number = static_cast<std::size_t>(sum - old_.data());
    if (forwards(op)) {
      number = compute_chunks(op, op.pass, last, nullptr, sum);
      became_[sum_number] = number + 1;
      return number;
    }
    number = compute_part(op, Pass::backward_input, last);
    const int summed = became_[sum_number] = communicate(*sum);
    number = compute_part(op, Pass::backward_weight, last);
    awaited_ = {summed};
    return number;
  }

  bool has_weights(const Segments& segments) const {
    for (int s = segments.first; s < segments.end; ++s)
      if (leaves_weights(*walk_.segments[s])) return true;
    return false;
  }

  // ----- passes that take turns

  bool may_pair(std::size_t pass) const {
    const std::size_t item = pass % (pairs_.size() + 1);  // a program can run all passes several times
    return item < pairs_.size() && pairs_[item];
  }

  void begin_pass(std::size_t pass) {
    begins_.push_back(static_cast<int>(new_.size()));
    awaited_.insert(awaited_.end(), carried_.begin(), carried_.end());
    carried_.clear();
    if (pass > 0 && may_pair(pass - 1)) {
      computed_ = before_pair_;
      carried_ = std::move(awaited_);
      awaited_.clear();
    } else if (may_pair(pass)) {
      before_pair_ = computed_;
    }
  }

  // Returns whether no op of [middle, end) waits for an op of [first, middle).
  bool independent(int first, int middle, int end) const {
    for (int i = middle; i < end; ++i)
      for (const Dependency& on : new_[i].op.after)
        if (on.steps_back == 0 && on.op >= first && on.op < middle) return false;
    return true;
  }

  // Interleaves two passes; ops on other streams keep their place after the compute op that precedes them.
  void take_turns(int first, int middle, int end, std::vector<int>& order) const {
    const auto computing = [&](int from, int to) {
      int ops = 0;
      for (int i = from; i < to; ++i) ops += new_[i].op.stream == compute_stream_;
      return std::max(1, ops);
    };
    const std::array total = {computing(first, middle), computing(middle, end)};
    std::array done = {0, 0};
    std::array next = {first, middle};
    const std::array ends = {middle, end};
    while (next[0] < ends[0] || next[1] < ends[1]) {
      const bool second_is_behind = done[1] * total[0] < done[0] * total[1];
      const int turn = next[0] == ends[0] ? 1 : next[1] == ends[1] ? 0 : second_is_behind ? 1 : 0;
      int& i = next[turn];
      for (; i < ends[turn] && new_[i].op.stream != compute_stream_; ++i) order.push_back(i);
      if (i < ends[turn]) order.push_back(i++);
      for (; i < ends[turn] && new_[i].op.stream != compute_stream_; ++i) order.push_back(i);
      ++done[turn];
    }
  }

  void place_in_order() {
    std::vector<int> order;
    order.reserve(new_.size());
    const auto as_written = [&](int end) {
      while (static_cast<int>(order.size()) < end) order.push_back(static_cast<int>(order.size()));
    };
    for (std::size_t pass = 0; pass < begins_.size(); ++pass) {
      if (!may_pair(pass) || !independent(begins_[pass], begins_[pass + 1], begins_[pass + 2])) continue;
      as_written(begins_[pass]);
      take_turns(begins_[pass], begins_[pass + 1], begins_[pass + 2], order);
      ++pass;
    }
    as_written(static_cast<int>(new_.size()));
    std::vector<int> position(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
    program_.ops.reserve(new_.size());
    for (const int i : order) {
      for (Dependency& on : new_[i].op.after) on.op = position[on.op];
      program_.ops.push_back(std::move(new_[i].op));
    }
  }

  StepPlan& plan_;
  const Walk& walk_;
  Program& program_;
  const std::vector<int>& first_ops_;
  const std::vector<bool>& pairs_;
  const int compute_stream_;
  const TensorOverlap mode_;
  const int chunks_;

  std::vector<Op> old_;
  int at_ = 0;
  std::vector<NewOp> new_;
  std::vector<int> became_;  // by old op: the new one that completes it
  int gather_ = -1;          // an old op that is written together with the op after it; -1: none
  int computed_ = -1;        // the last new op on the compute stream; -1: none
  // New ops that the next computation waits for, or the next computation of weight gradients.
  std::vector<int> awaited_, awaited_by_weights_;
  std::vector<Dependency> inherited_;  // ops of the old program that the next computation waits for
  std::vector<int> begins_;            // first ops of the passes, in the new program
  int before_pair_ = -1;               // the last computation before two passes that take turns
  std::vector<int> carried_;           // ops of the first of them that the pass after both must wait for
};

}  // namespace

void overlap_communication(StepPlan& plan) {
  const StrategyChoice& strategy = plan.scenario.strategy;
  if (strategy.tensor_overlap == TensorOverlap::none && !strategy.overlap_passes) return;
  std::vector<std::vector<bool>> pairs(static_cast<std::size_t>(strategy.pipeline));
  if (strategy.overlap_passes)
    pairs = pass_pairs(strategy.schedule, {.stages = strategy.pipeline,
                                           .microbatches = plan.scenario.microbatches,
                                           .chunks = strategy.virtual_stages,
                                           .group = strategy.microbatch_group});
  plan.first_ops.resize(pairs.size());
  for (Program& program : plan.schedule.programs) {
    if (program.role != 0) continue;
    const auto at = std::find_if(program.where.begin(), program.where.end(),
                                 [&](const At& its) { return its.axis == plan.pipeline_axis; });
    const auto stage = at == program.where.end() ? 0 : static_cast<std::size_t>(at->coordinate);
    Rewriter(plan, program, plan.first_ops[stage], pairs[stage]).rewrite();
  }
}

}  // namespace rehearse
