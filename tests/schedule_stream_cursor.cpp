// Checks the order in which a stream reaches its ops, and what each op waits for.
#include <string>
#include <vector>

#include "simulator/schedule/stream_cursor.hpp"
#include "tests/catch.hpp"
#include "tests/schedule_builders.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

Op repeat(int count, int stream = 0) {
  Op op;
  op.name = "repeat";
  op.kind = OpKind::repeat_begin;
  op.stream = stream;
  op.count = count;
  return op;
}

Op end(int stream = 0) {
  Op op;
  op.name = "end";
  op.kind = OpKind::repeat_end;
  op.stream = stream;
  return op;
}

Op counter(OpKind kind, Counter counter, double at_least = 0, double at_least_per_iteration = 0) {
  Op op;
  op.name = "counter";
  op.kind = kind;
  op.counter = std::move(counter);
  op.at_least = at_least;
  op.at_least_per_iteration = at_least_per_iteration;
  return op;
}

Schedule schedule_of(std::vector<Op> ops) {
  Schedule s;
  s.roles = {role("worker", {{"data", 1}})};
  s.works = {work(1)};
  Program program;
  program.name = "worker";
  program.streams = {"compute", "other"};
  program.ops = std::move(ops);
  s.programs = {program};
  return s;
}

// Lists the ops that the stream runs in `steps` steps, each with the iteration of its innermost repeat
// ("2:1").
std::string order(const Schedule& s, int stream, int steps) {
  const ProgramIndex index(s, s.programs[0]);
  StreamCursor cursor(s.programs[0], index, stream);
  std::string text;
  for (; cursor.step() < steps; cursor.next_step()) {
    for (; !cursor.at_end(); cursor.advance())
      text += std::to_string(cursor.op()) + ":" + std::to_string(cursor.iteration()) + " ";
    text += "| ";
  }
  return text;
}

}  // namespace

TEST_CASE("a stream comes to its ops in order, in each iteration of its repeats, step by step") {
  const Schedule plain = schedule_of({compute("a", 0, 0), compute("b", 1, 0), compute("c", 0, 0)});
  CHECK(order(plain, 0, 2) == "0:0 2:0 | 0:0 2:0 | ");
  CHECK(order(plain, 1, 1) == "1:0 | ");
  const Schedule once = schedule_of({repeat(1), compute("a", 0, 0), end()});
  CHECK(order(once, 0, 1) == "0:0 1:0 2:0 | ");
  CHECK(order(once, 1, 2) == "| | ");  // a stream without ops
  const Schedule nested = schedule_of(
      {repeat(2), compute("a", 0, 0), repeat(3), compute("b", 0, 0), end(), end(), compute("c", 0, 0)});
  CHECK(order(nested, 0, 1) ==
        "0:0 1:0 2:0 3:0 4:0 3:1 4:1 3:2 4:2 5:0 "
        "1:1 2:1 3:0 4:0 3:1 4:1 3:2 4:2 5:1 6:0 | ");
}

TEST_CASE("a repeat without end is never left") {
  const Schedule s = schedule_of({compute("a", 0, 0), repeat(0), compute("b", 0, 0), end()});
  const ProgramIndex index(s, s.programs[0]);
  StreamCursor cursor(s.programs[0], index, 0);
  CHECK_FALSE(cursor.endless());
  cursor.advance();
  for (int i = 0; i < 1000; ++i) {
    cursor.advance();
    REQUIRE(cursor.op() == 2);
    REQUIRE(cursor.iteration() == i);
    CHECK(cursor.endless());
    cursor.advance();
    REQUIRE(cursor.op() == 3);
  }
}

TEST_CASE("an op waits for the runs of others that its step and its repeat ask for") {
  // Op 3 runs twice in a step and waits for op 0 of its step and op 1 of the previous step; op 5 waits for
  // both runs of op 3.
  const Schedule s = schedule_of({compute("a", 1, 0), compute("b", 1, 0), repeat(2),
                                  compute("c", 0, 0, {{0, 0}, {1, 1}}), end(), compute("d", 0, 0, {{3, 0}})});
  const ProgramIndex index(s, s.programs[0]);
  StreamCursor cursor(s.programs[0], index, 0);
  std::vector<long> done(6, 0);
  const auto pass = [&] {
    ++done[cursor.op()];
    cursor.advance();
  };
  pass();
  const std::vector<Dependency>& after = cursor.current().after;
  CHECK(cursor.unmet(done) == &after[0]);
  CHECK(cursor.required(after[0], done) == 1);
  CHECK(cursor.required(after[1], done) <= 0);  // there is no previous step
  done[0] = 1;
  CHECK(cursor.unmet(done) == nullptr);
  pass();
  pass();
  CHECK(cursor.unmet(done) == nullptr);  // the second run is in the same step
  pass();
  pass();
  CHECK(cursor.op() == 5);
  CHECK(cursor.required(cursor.current().after[0], done) == 2);
  CHECK(cursor.unmet(done) == nullptr);
  pass();
  cursor.next_step();
  CHECK(cursor.step() == 1);
  pass();
  CHECK(cursor.required(after[0], done) == 2);
  CHECK(cursor.required(after[1], done) == 1);
  done[0] = 2;
  CHECK(cursor.unmet(done) == &after[1]);
  done[1] = 1;
  CHECK(cursor.unmet(done) == nullptr);
}

TEST_CASE("the counters of a repeat move on with its iteration") {
  const Schedule s = schedule_of({repeat(3), counter(OpKind::signal, {"pushed", 4, 10}),
                                  counter(OpKind::wait_until, {"applied", -1, 1}, 2, 0.5), end()});
  const ProgramIndex index(s, s.programs[0]);
  StreamCursor cursor(s.programs[0], index, 0);
  Counters counters;
  cursor.advance();
  for (int i = 0; i < 3; ++i) {
    CHECK(cursor.counter() == CounterAddress("pushed", 4 + 10 * i));
    cursor.advance();
    CHECK(cursor.counter() == CounterAddress("applied", i - 1));
    CHECK(cursor.awaited_value() == 2 + 0.5 * i);
    if (i > 0) {  // the first iteration has none before it to wait for
      CHECK_FALSE(cursor.reached(counters));
      counters[{"applied", i - 1}] = 1.5 + 0.5 * i;
      CHECK_FALSE(cursor.reached(counters));
      counters[{"applied", i - 1}] = 2 + 0.5 * i;
    }
    CHECK(cursor.reached(counters));
    cursor.advance();
    cursor.advance();
  }
  CHECK(cursor.at_end());
}
