// Checks that malformed schedules are refused with the names of the ops, and that good ones pass.
#include <functional>
#include <string>

#include "models/text/error.hpp"
#include "simulator/schedule/schedule.hpp"
#include "tests/catch.hpp"
#include "tests/schedule_builders.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

const Group kData = {{{0}}};

// Returns a schedule with two stages of two ranks; each stage has its own program with the streams "main" and
// "side".
Schedule two_stages() {
  Schedule s;
  s.roles = {{"worker", {Mesh({{"data", 2}, {"pipeline", 2}})}}};
  for (int stage = 0; stage < 2; ++stage) {
    Program p;
    p.name = stage == 0 ? "stage 0" : "stage 1";
    p.where = {{1, stage}};
    p.streams = {"main", "side"};
    s.programs.push_back(p);
  }
  return s;
}

const Peer kNext = Peer::along(1, 1), kBefore = Peer::along(1, -1);

}  // namespace

TEST_CASE("bad schedules are refused with the ops named") {
  struct Case {
    const char* what;
    std::function<void(Schedule&)> make;
    std::vector<std::string> told;  // the message contains all of these
  };
  const Case cases[] = {
      {"a send without a receive",
       [](Schedule& s) { s.programs[0].ops = {exchange("send x", 0, {send(kNext, 8)})}; },
       {"send x", "stage 0", "receive"}},
      {"a receive without a send",
       [](Schedule& s) { s.programs[1].ops = {exchange("receive x", 0, {receive(kBefore, 8)})}; },
       {"receive x", "stage 1", "send"}},
      {"tags that differ",
       [](Schedule& s) {
         s.programs[0].ops = {exchange("send x", 0, {send(kNext, 8, 1)})};
         s.programs[1].ops = {exchange("receive x", 0, {receive(kBefore, 8, 2)})};
       },
       {"send x", "receive x", "tag 1", "tag 2"}},
      {"bytes that differ",
       [](Schedule& s) {
         s.programs[0].ops = {exchange("send x", 0, {send(kNext, 8)})};
         s.programs[1].ops = {exchange("receive x", 0, {receive(kBefore, 16)})};
       },
       {"bytes", "send x", "receive x", "8", "16"}},
      {"a peer beyond the end of the axis",
       [](Schedule& s) { s.programs[1].ops = {exchange("send x", 0, {send(kNext, 8)})}; },
       {"send x", "beyond the end"}},
      {"both stages send first: rendezvous sends wait for each other",
       [](Schedule& s) {
         s.programs[0].ops = {exchange("s0", 0, {send(kNext, 8)}), exchange("r0", 0, {receive(kNext, 8)})};
         s.programs[1].ops = {exchange("s1", 0, {send(kBefore, 8)}),
                              exchange("r1", 0, {receive(kBefore, 8)})};
       },
       {"s0", "s1", "wait forever"}},
      {"two dependencies in a circle",
       [](Schedule& s) {
         s.programs[0].ops = {host("a", 0, {{1, 0}}), host("b", 1, {{0, 0}})};
       },
       {"\"a\"", "\"b\"", "waits for op"}},
      {"an op that waits for itself over a message",
       [](Schedule& s) {
         s.programs[0].ops = {exchange("ask", 0, {send(kNext, 8)}, {{1, 0}}),
                              exchange("hear", 1, {receive(kNext, 8)})};
         s.programs[1].ops = {exchange("hear 1", 0, {receive(kBefore, 8)}),
                              exchange("tell", 0, {send(kBefore, 8)})};
       },
       {"ask", "hear", "hear 1"}},
      {"collectives in different order",
       [](Schedule& s) {
         s.programs[0].ops = {all_reduce("sum", 0, kData, 8), exchange("x", 0, {send(kNext, 8)})};
         s.programs[1].ops = {exchange("y", 0, {receive(kBefore, 16)}), all_reduce("sum", 0, kData, 8)};
       },
       {"bytes", "\"x\"", "\"y\""}},
      {"a race between streams",
       [](Schedule& s) {
         Program& p = s.programs[0];
         p.tensors = {{TensorKind::gradient, "g"}};
         p.ops = {host("write g", 0), host("read g", 1)};
         p.ops[0].writes = {0};
         p.ops[1].reads = {0};
       },
       {"race", "write g", "read g", "\"g\""}},
      {"a race with the next step",
       [](Schedule& s) {
         Program& p = s.programs[0];
         p.tensors = {{TensorKind::gradient, "g"}};
         p.ops = {host("write g", 0),
                  host("read g", 1, {{0, 0}})};  // the next step's write could come before this step's read
         p.ops[0].writes = {0};
         p.ops[1].reads = {0};
       },
       {"race", "of another step"}},
      {"an op of a stream that does not exist",
       [](Schedule& s) { s.programs[0].ops = {host("a", 7)}; },
       {"\"a\"", "stream 7", "there are 2"}},
      {"a dependency on an op that does not exist",
       [](Schedule& s) {
         s.programs[0].ops = {host("a", 0, {{9, 0}})};
       },
       {"\"a\"", "op 9"}},
      {"a repeat without an end",
       [](Schedule& s) {
         s.programs[0].ops = {host("a", 0)};
         s.programs[0].ops[0].kind = OpKind::repeat_begin;
       },
       {"never ends"}},
      {"an end without a repeat",
       [](Schedule& s) {
         s.programs[0].ops = {host("a", 0)};
         s.programs[0].ops[0].kind = OpKind::repeat_end;
       },
       {"no repeat to end"}},
      {"a counter nobody raises",
       [](Schedule& s) {
         s.programs[0].ops = {host("wait", 0)};
         s.programs[0].ops[0].kind = OpKind::wait_until;
         s.programs[0].ops[0].counter.name = "turns";
         s.programs[0].ops[0].at_least = 1;
       },
       {"wait", "counter \"turns\""}},
      {"ranks without a program", [](Schedule& s) { s.programs.pop_back(); }, {"rank 2", "no program"}},
      {"meshes of different size",
       [](Schedule& s) {
         s.roles[0].meshes.push_back(Mesh({{"data", 3}}));
       },
       {"4 and 3"}},
      {"a compute op without work",
       [](Schedule& s) {
         s.programs[0].ops = {host("a", 0)};
         s.programs[0].ops[0].kind = OpKind::compute;
       },
       {"work -1"}},
      {"blocks that do not divide the axis",
       [](Schedule& s) {
         s.programs[0].ops = {all_reduce("sum", 0, kData, 8)};
         s.programs[0].ops[0].collective.group = {{{0, 3, 1}}};
       },
       {"sum", "3 x 1"}},
      {"a size that is not a number",
       [](Schedule& s) { s.programs[0].ops = {exchange("send x", 0, {send(kNext, -1)})}; },
       {"send x", "-1"}},
      {"a turn that does not exist",
       [](Schedule& s) {
         s.programs[0].ops = {host("write", 0)};
         s.programs[0].ops[0].turn = 0;
       },
       {"write", "turn 0"}},
      {"a turn for many transfers at once",
       [](Schedule& s) {
         s.programs[0].turns = {{"card", 1}};
         s.programs[0].ops = {exchange("to all", 0, {send(Peer::each(0), 8)})};
         s.programs[0].ops[0].turn = 0;
       },
       {"to all", "one transfer"}},
      {"a turn that is nobody's",
       [](Schedule& s) {
         s.programs[0].turns = {{"card", 0}};
       },
       {"stage 0", "card"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    Schedule s = two_stages();
    c.make(s);
    std::string message;
    try {
      check(s);
    } catch (const RunError& e) {
      message = e.what();
    }
    CAPTURE(message);
    CHECK_FALSE(message.empty());
    for (const std::string& part : c.told) {
      CAPTURE(part);
      CHECK(message.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("members of a group that call different collectives are told") {
  Schedule s;
  s.roles = {{"worker", {Mesh({{"data", 2}})}}};
  for (int r = 0; r < 2; ++r) {
    Program p;
    p.name = r == 0 ? "even" : "odd";
    p.where = {{0, r}};
    p.streams = {"main"};
    p.ops = {all_reduce(r == 0 ? "sum" : "collect", 0, kData, 8)};
    if (r == 1) p.ops[0].collective.kind = CollectiveKind::all_gather;
    s.programs.push_back(p);
  }
  CHECK_THROWS_AS(check(s), RunError);
  s.programs[1].ops[0].collective.kind = CollectiveKind::all_reduce;
  CHECK_NOTHROW(check(s));
  s.programs[1].ops[0].collective.bytes = 9;
  CHECK_THROWS_AS(check(s), RunError);
  s.programs[1].ops.clear();
  CHECK_THROWS_AS(check(s), RunError);
}

TEST_CASE("tensors that are shared on purpose are used in any order, others are not") {
  Schedule s = two_stages();
  Program& p = s.programs[0];
  p.tensors = {{TensorKind::weight, "w"}};
  p.ops = {host("write", 0), host("read", 1)};
  p.ops[0].writes = {0};
  p.ops[1].reads = {0};
  CHECK_THROWS_AS(check(s), RunError);
  p.tensors[0].shared = true;
  CHECK_NOTHROW(check(s));
}

TEST_CASE("a counter of an iteration before the first makes nobody wait") {
  Schedule s = two_stages();
  Op wait;
  wait.name = "not too far ahead";
  wait.kind = OpKind::wait_until;
  wait.counter = {"done", -1, 1};
  wait.at_least = 1;
  Op begin, end, tell;
  begin.kind = OpKind::repeat_begin;
  end.kind = OpKind::repeat_end;
  begin.count = 2;
  tell.kind = OpKind::signal;
  tell.counter = {"done", 0, 1};
  s.programs[0].ops = {begin, wait, tell, end};
  CHECK_NOTHROW(check(s));
  s.programs[0].ops[1].counter.number = 0;  // waits for its own later signal
  CHECK_THROWS_AS(check(s), RunError);
}

TEST_CASE("good schedules pass: sends and receives that go together, orders by dependency, empty programs") {
  Schedule s = two_stages();
  CHECK_NOTHROW(check(s));
  s.programs[0].ops = {exchange("both ways", 0, {send(kNext, 8), receive(kNext, 8)})};
  s.programs[1].ops = {exchange("both ways", 0, {send(kBefore, 8), receive(kBefore, 8)})};
  CHECK_NOTHROW(check(s));
  Program& p = s.programs[0];
  p.tensors = {{TensorKind::gradient, "g"}};
  p.ops = {host("write", 0, {{1, 1}}), host("read", 1, {{0, 0}}), p.ops[0]};
  p.ops[0].writes = {0};
  p.ops[1].reads = {0};
  CHECK_NOTHROW(check(s));
}
