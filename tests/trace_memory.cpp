#include <cmath>

#include "simulator/trace/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

Tensor tensor(TensorKind kind, double bytes) {
  Tensor t;
  t.kind = kind;
  t.bytes = bytes;
  return t;
}

Op uses(Op op, std::vector<int> reads, std::vector<int> writes) {
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  return op;
}

}  // namespace

TEST_CASE("memory peaks where the lifetimes overlap most") {
  struct Case {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<Op> ops;
    std::vector<Row> rows;
    double weights, gradients, optimizer, activations, buffers;
  };
  using K = TensorKind;
  const std::vector<Case> cases = {
      {"what persists counts throughout, used or not",
       {tensor(K::weight, 10), tensor(K::gradient, 20), tensor(K::optimizer_state, 60)},
       {compute("f")},
       {{0, 0, 0, 1}},
       10,
       20,
       60,
       0,
       0},
      {"an activation lives from the op that writes it to the last that reads it",
       {tensor(K::activation, 5)},
       {uses(compute("f"), {}, {0}), uses(compute("b"), {0}, {})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}},
       0,
       0,
       0,
       5,
       0},
      {"forward, forward, backward, backward keeps both micro-batches",
       {tensor(K::activation, 5), tensor(K::activation, 7)},
       {uses(compute("f0"), {}, {0}), uses(compute("f1"), {}, {1}), uses(compute("b0"), {0}, {}),
        uses(compute("b1"), {1}, {})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}, {2, 2, 2, 3}, {3, 3, 3, 4}},
       0,
       0,
       0,
       12,
       0},
      {"forward, backward, forward, backward keeps one at a time: freed at the instant the next begins",
       {tensor(K::activation, 5), tensor(K::activation, 7)},
       {uses(compute("f0"), {}, {0}), uses(compute("b0"), {0}, {}), uses(compute("f1"), {}, {1}),
        uses(compute("b1"), {1}, {})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}, {2, 2, 2, 3}, {3, 3, 3, 4}},
       0,
       0,
       0,
       7,
       0},
      {"the same where rounding lets an op begin before the one in front of it ends",
       {tensor(K::activation, 5), tensor(K::activation, 7)},
       {uses(compute("f0"), {}, {0}), uses(compute("b0"), {0}, {}), uses(compute("f1"), {}, {1}),
        uses(compute("b1"), {1}, {})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}, {2, 2, std::nextafter(2.0, 1.0), 3}, {3, 3, 3, 4}},
       0,
       0,
       0,
       7,
       0},
      {"batches and gradients of activations count as activations; buffers are told apart",
       {tensor(K::batch, 1), tensor(K::activation_gradient, 2), tensor(K::buffer, 4), tensor(K::weight, 8)},
       {uses(compute("f"), {}, {0, 1, 2}), uses(compute("b"), {0, 1, 2}, {3})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}},
       8,
       0,
       0,
       3,
       4},
      {"read before it is written: it was there when the step began",
       {tensor(K::activation, 5), tensor(K::activation, 3)},
       {uses(compute("f"), {}, {1}), uses(compute("g"), {0, 1}, {})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}},
       0,
       0,
       0,
       8,
       0},
      {"the kinds are those of the peak, not each kind's own maximum",
       {tensor(K::activation, 9), tensor(K::buffer, 6)},
       {uses(compute("f"), {}, {0}), uses(compute("b"), {}, {1})},
       {{0, 0, 0, 1}, {1, 1, 1, 2}},
       0,
       0,
       0,
       9,
       0},
      {"what no op uses takes no room",
       {tensor(K::activation, 9)},
       {compute("f")},
       {{0, 0, 0, 1}},
       0,
       0,
       0,
       0,
       0},
      {"the last step counts",
       {tensor(K::activation, 9)},
       {uses(compute("f"), {}, {0})},
       {{0, 0, 0, 1, 0}, {0, 1, 1, 2, 1}},
       0,
       0,
       0,
       9,
       0},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    TraceParts parts{1, 1, {{"stage 0", {0}, c.ops, c.rows}}};
    const auto schedule = schedule_of(parts);
    schedule->programs[0].tensors = c.tensors;
    const MemoryUse use = memory_use(make_trace(parts, schedule), 0, 1000);
    CHECK(use.weights == c.weights);
    CHECK(use.gradients == c.gradients);
    CHECK(use.optimizer == c.optimizer);
    CHECK(use.activations == c.activations);
    CHECK(use.buffers == c.buffers);
    CHECK(use.total == c.weights + c.gradients + c.optimizer + c.activations + c.buffers);
  }
}

TEST_CASE("the fullest stage is named, and whether it fits") {
  TraceParts parts{2, 2, {}};
  parts.classes = {{"stage 0", {0, 1}, {compute("f")}, {{0, 0, 0, 1}}},
                   {"stage 1", {2, 3}, {compute("f")}, {{0, 0, 0, 1}}}};
  const auto schedule = schedule_of(parts);
  schedule->programs[0].tensors = {tensor(TensorKind::weight, 30)};
  // Uneven shards: rank 2 is at position 0 on the data axis.
  Tensor shard = tensor(TensorKind::weight, 0);
  shard.bytes.axis = 0;
  shard.bytes.values = {50, 40};
  schedule->programs[1].tensors = {shard};
  const Trace trace = make_trace(parts, schedule);
  const MemoryUse use = memory_use(trace, 0, 49);
  CHECK(use.fullest == "stage 1");
  CHECK(use.total == 50);
  CHECK(use.capacity == 49);
  CHECK_FALSE(use.fits);
  CHECK(memory_use(trace, 0, 50).fits);
}
