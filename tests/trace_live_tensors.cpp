// Tests when tensors are live, what is live at the peak, and how their rows are gathered.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "simulator/trace/memory_moment.hpp"
#include "simulator/trace/metrics.hpp"
#include "simulator/trace/tensor_rows.hpp"
#include "tests/catch.hpp"
#include "tests/trace_builder.hpp"

using namespace rehearse;
using namespace rehearse::test;

namespace {

using K = TensorKind;

Tensor named(std::string name, K kind, double bytes, int first_layer = 0, int last_layer = -1,
             int microbatch = -1) {
  Tensor t;
  t.name = std::move(name);
  t.kind = kind;
  t.bytes = bytes;
  t.first_layer = first_layer;
  t.last_layer = last_layer;
  t.microbatch = microbatch;
  return t;
}

Op with_tensors(Op op, std::vector<int> reads, std::vector<int> writes) {
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  return op;
}

// Two layers of one rank: forward [0, 1) and [1, 2), backward [2, 4) and [4, 6), an update [6, 7), all 0.5 s
// late.
Trace two_layers() {
  const double late_s = 0.5;
  TraceParts parts{1, 1, {}};
  parts.classes = {{"stage 0",
                    {0},
                    {with_tensors(compute("f0"), {0}, {2, 3}), with_tensors(compute("f1"), {0, 3}, {4}),
                     with_tensors(compute("b1"), {0, 4}, {1, 5}), with_tensors(compute("b0"), {0, 2, 5}, {1}),
                     with_tensors(compute("update"), {1, 6}, {0, 6})},
                    {}}};
  const std::vector<double> ends_s = {1, 2, 4, 6, 7};
  double begin_s = late_s;
  for (int op = 0; op < 5; ++op) {
    parts.classes[0].rows.push_back({op, begin_s, begin_s, ends_s[op] + late_s});
    begin_s = ends_s[op] + late_s;
  }
  const auto schedule = schedule_of(parts);
  schedule->programs[0].tensors = {
      named("weights", K::weight, 10),    named("gradients", K::gradient, 10),
      named("saved 0", K::activation, 5), named("output 0", K::buffer, 2),
      named("saved 1", K::activation, 6), named("gradient", K::activation_gradient, 3),
      named("average", K::buffer, 1),     named("unused", K::activation, 100)};
  return make_trace(parts, schedule);
}

}  // namespace

TEST_CASE("tensors of two layers live from their first writer to their last user") {
  struct Expected {
    std::string name;
    bool persistent;
    double born_s, freed_s;
    int born_in, freed_in;
  };
  // By hand: each is born when the op that writes it begins, and freed when the last op that uses it ends.
  const std::vector<Expected> expected = {
      {"weights", true, 0.5, 7.5, -1, -1}, {"gradients", true, 0.5, 7.5, -1, -1},
      {"saved 0", false, 0.5, 6.5, 0, 3},  {"output 0", false, 0.5, 2.5, 0, 1},
      {"saved 1", false, 1.5, 4.5, 1, 2},  {"gradient", false, 2.5, 6.5, 2, 3},
      {"average", false, 6.5, 7.5, 4, 4},
  };
  const Trace trace = two_layers();
  const LiveTensors live = live_tensors(trace, 0, 0);
  CHECK(live.begin_s == 0.5);
  CHECK(live.end_s == 7.5);
  REQUIRE(live.tensors.size() == expected.size());  // without the unused one
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const LiveTensor& found = live.tensors[i];
    CAPTURE(expected[i].name);
    CHECK(live.program->tensors[found.tensor].name == expected[i].name);
    CHECK(found.persistent == expected[i].persistent);
    CHECK(found.born_s == expected[i].born_s);
    CHECK(found.freed_s == expected[i].freed_s);
    CHECK(found.born_in == expected[i].born_in);
    CHECK(found.freed_in == expected[i].freed_in);
  }
  CHECK(live_tensors(trace, 0, 0, TensorMemory::host).tensors.empty());
  CHECK(live_tensors(trace, 0, 1).program == nullptr);  // no such step
}

TEST_CASE("the peak of two layers is at the beginning of the backward pass") {
  const Trace trace = two_layers();
  // 20 always; at 0 s + 5 + 2, at 1 s + 6, at 2 s - 2 + 3: 34 bytes; at 4 s - 6.
  const MemoryMoment peak = peak_moment(trace, 0, 0);
  CHECK(peak.time_s == 2);
  REQUIRE(peak.op == 2);
  CHECK(peak.bytes == 34);
  std::vector<std::string> names;
  for (const LiveTensor& one : peak.tensors) names.push_back(peak.program->tensors[one.tensor].name);
  CHECK(names == std::vector<std::string>{"weights", "gradients", "saved 1", "saved 0", "gradient"});
  CHECK(memory_use(trace, 0, 0).total == 34);
  const std::vector<MemoryMoment> device = fullest_device(trace, 0);
  REQUIRE(device.size() == 1);
  CHECK(device[0].time_s == 2);

  struct Moment {
    std::size_t changes;
    double time_s, bytes;
  };
  const LiveTensors live = live_tensors(trace, 0, 0);
  const MemoryTimeline timeline = memory_timeline(live);
  for (const auto& [changes, time_s, bytes] : std::vector<Moment>{
           {0, 0, 20}, {1, 0, 25}, {2, 0, 27}, {3, 1, 33}, {4, 2, 31}, {5, 2, 34}, {6, 4, 28}}) {
    CAPTURE(changes);
    const MemoryMoment moment = moment_after(live, timeline, changes);
    CHECK(moment.time_s == time_s);
    CHECK(moment.bytes == bytes);
  }
}

TEST_CASE("a tensor that is read before it is written is live before the step") {
  TraceParts parts{1, 1, {}};
  parts.classes = {{"stage 0",
                    {0},
                    {with_tensors(compute("f"), {0}, {1}), with_tensors(compute("b"), {1}, {0})},
                    {{0, 0, 1, 2}, {1, 2, 2, 3}}}};
  const auto schedule = schedule_of(parts);
  schedule->programs[0].tensors = {named("delayed", K::buffer, 4), named("saved", K::activation, 5)};
  const Trace trace = make_trace(parts, schedule);
  const LiveTensors live = live_tensors(trace, 0, 0);
  REQUIRE(live.tensors.size() == 2);
  CHECK(live.tensors[0].born_in == -1);
  CHECK(live.tensors[0].born_s == 0);  // the op was ready then, and began at 1 s
  CHECK(live.tensors[0].freed_in == 1);
  CHECK(live.tensors[1].born_s == 1);
  CHECK(peak_moment(trace, 0, 0).bytes == 9);
  CHECK(peak_moment(trace, 0, 0).op == 0);
}

TEST_CASE("memory that is only persistent peaks from the beginning") {
  TraceParts parts{1, 1, {{"stage 0", {0}, {compute("f")}, {{0, 0, 0, 1}}}}};
  const auto schedule = schedule_of(parts);
  schedule->programs[0].tensors = {named("weights", K::weight, 10)};
  const Trace trace = make_trace(parts, schedule);
  const MemoryMoment peak = peak_moment(trace, 0, 0);
  CHECK(peak.time_s == 0);
  CHECK(peak.op == 0);  // that runs then
  CHECK(peak.bytes == 10);
  schedule->programs[0].tensors.clear();
  CHECK(fullest_device(make_trace(parts, schedule), 0).empty());
}

TEST_CASE("tensors that differ only in layer or micro-batch share a row") {
  struct Case {
    std::string name;
    std::vector<Tensor> tensors;
    std::vector<std::string> rows;  // name x count: bytes, layers, micro-batches
  };
  const std::vector<Case> cases = {
      {"one tensor keeps its name",
       {named("activations 3, chunk 1", K::activation, 5, 2, 4, 3)},
       {"activations 3, chunk 1 x 1: 5, 2-4, 3"}},
      {"buckets, whatever their bytes",
       {named("weights 0", K::weight, 5, 0, 1), named("weights 1", K::weight, 7, 2, 3),
        named("weights 10", K::weight, 1, 8, 8)},
       {"weights x 3: 13, 0-3, 8, "}},
      {"micro-batches of the same layers",
       {named("activations 0, chunk 0", K::activation, 5, 0, 1, 0),
        named("activations 1, chunk 0", K::activation, 5, 0, 1, 1),
        named("activations 0, chunk 1", K::activation, 6, 4, 5, 0)},
       {"activations x 2: 10, 0-1, 0-1", "activations 0, chunk 1 x 1: 6, 4-5, 0"}},
      {"not tensors of other kinds or names",
       {named("output 0", K::buffer, 5, 0, 1, 0), named("output 0", K::activation, 4, 0, 1, 0),
        named("input 0", K::buffer, 3, 0, 1, 0)},
       {"output 0 x 1: 5, 0-1, 0", "output 0 x 1: 4, 0-1, 0", "input 0 x 1: 3, 0-1, 0"}},
      {"names that are numbers alone",
       {named("1", K::buffer, 5), named("2", K::buffer, 4)},
       {"1 x 2: 9, , "}},
      {"a tensor without a name", {named("", K::batch, 5)}, {"batch x 1: 5, , "}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    TraceParts parts{1, 1, {{"stage 0", {0}, {compute("f")}, {{0, 0, 0, 1}}}}};
    for (std::size_t i = 0; i < c.tensors.size(); ++i)
      parts.classes[0].ops[0].writes.push_back(static_cast<int>(i));
    const auto schedule = schedule_of(parts);
    schedule->programs[0].tensors = c.tensors;
    const Trace trace = make_trace(parts, schedule);
    std::vector<std::string> found;
    for (const TensorRow& row : tensor_rows(trace, peak_moment(trace, 0, 0)))
      found.push_back(fmt::format("{} x {}: {:.0f}, {}, {}", row.name, row.count, row.bytes,
                                  ranges_text(row.layers), ranges_text(row.microbatches)));
    CHECK(found == c.rows);
  }
}

TEST_CASE("a row lives from its first tensor's birth to its last one's end") {
  TraceParts parts{1, 1, {}};
  parts.classes = {{"stage 0",
                    {0},
                    {with_tensors(compute("f0"), {}, {0}), with_tensors(compute("f1"), {}, {1}),
                     with_tensors(compute("b0"), {0}, {}), with_tensors(compute("b1"), {1}, {})},
                    {{0, 0, 0, 1}, {1, 1, 1, 2}, {2, 2, 2, 3}, {3, 3, 3, 4}}}};
  const auto schedule = schedule_of(parts);
  schedule->programs[0].tensors = {named("saved 0", K::activation, 5, 0, 0, 0),
                                   named("saved 1", K::activation, 5, 0, 0, 1)};
  const Trace trace = make_trace(parts, schedule);
  const std::vector<TensorRow> rows = tensor_rows(trace, peak_moment(trace, 0, 0));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].born_s == 0);
  CHECK(rows[0].born_in == "f0");
  CHECK(rows[0].freed_s == 4);
  CHECK(rows[0].freed_in == "b1");
}
