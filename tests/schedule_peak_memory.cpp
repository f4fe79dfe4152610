#include "simulator/schedule/peak_memory.hpp"
#include "tests/catch.hpp"
#include "tests/schedule_builders.hpp"

using namespace rehearse;
using namespace rehearse::testing;

TEST_CASE("the peak that the order of a program tells") {
  using K = TensorKind;
  struct Case {
    std::string name;
    std::vector<K> kinds;                                            // tensor t has 10^t bytes
    std::vector<std::pair<std::vector<int>, std::vector<int>>> ops;  // reads, writes
    double bytes;
  };
  const std::vector<Case> cases = {
      {"what persists counts, used or not", {K::weight, K::gradient, K::optimizer_state}, {{}}, 111},
      {"one micro-batch behind the other",
       {K::activation, K::activation},
       {{{}, {0}}, {{0}, {}}, {{}, {1}}, {{1}, {}}},
       10},
      {"both kept", {K::activation, K::activation}, {{{}, {0}}, {{}, {1}}, {{0}, {}}, {{1}, {}}}, 11},
      {"freed behind the op that uses it last",
       {K::activation, K::buffer},
       {{{}, {0}}, {{0}, {1}}, {{1}, {}}},
       11},
      {"read before it is written: there from the beginning",
       {K::activation, K::buffer},
       {{{}, {0}}, {{0}, {}}, {{1}, {}}, {{}, {1}}},
       11},
      {"nobody uses it", {K::activation, K::buffer}, {{{}, {0}}}, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Schedule schedule;
    schedule.roles = {role("worker", {{"data", 2}})};
    Program program;
    program.streams = {"compute"};
    double bytes = 1;
    for (const K kind : c.kinds) {
      Tensor tensor;
      tensor.kind = kind;
      tensor.bytes = bytes;
      bytes *= 10;
      program.tensors.push_back(tensor);
    }
    for (const auto& [reads, writes] : c.ops) {
      Op op;
      op.reads = reads;
      op.writes = writes;
      program.ops.push_back(op);
    }
    schedule.programs = {program};
    CHECK(peak_worker_bytes(schedule) == c.bytes);
    schedule.programs.front().role = 1;  // a parameter server is not a worker
    CHECK(peak_worker_bytes(schedule) == 0);
  }
}
