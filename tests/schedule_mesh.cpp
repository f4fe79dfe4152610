// Compares the members of meshes and groups and their peers with coordinates worked out by hand.
#include "simulator/schedule/mesh.hpp"
#include "simulator/schedule/program_index.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

TEST_CASE("the first axis of a mesh is innermost") {
  const Mesh mesh({{"tensor", 4}, {"data", 3}, {"pipeline", 2}});
  REQUIRE(mesh.size() == 24);
  for (int p = 0; p < 2; ++p)
    for (int d = 0; d < 3; ++d)
      for (int t = 0; t < 4; ++t) {
        const int rank = t + 4 * (d + 3 * p);
        CHECK(mesh.coordinate(rank, 0) == t);
        CHECK(mesh.coordinate(rank, 1) == d);
        CHECK(mesh.coordinate(rank, 2) == p);
      }
  CHECK(mesh.moved(0, 2, 1) == 12);
  CHECK(mesh.axis("data") == 1);
  CHECK(mesh.axis("expert") == -1);
}

TEST_CASE("groups are products of axes, factors of an axis, or named coordinates") {
  Role role{"worker", {Mesh({{"data", 8}, {"pipeline", 3}})}};
  struct Case {
    const char* what;
    Group group;
    int rank;
    std::vector<int> members;
  };
  const Case cases[] = {
      {"a whole axis", {{{0}}}, 10, {8, 9, 10, 11, 12, 13, 14, 15}},
      {"the other axis", {{{1}}}, 10, {2, 10, 18}},
      {"both axes: everyone", {{{1}, {0}}}, 0, {0, 8,  16, 1, 9,  17, 2, 10, 18, 3, 11, 19,
                                                4, 12, 20, 5, 13, 21, 6, 14, 22, 7, 15, 23}},
      {"the node part: blocks of 4", {{{0, 4, 1}}}, 6, {4, 5, 6, 7}},
      {"the part across nodes: stride 4", {{{0, 2, 4}}}, 6, {2, 6}},
      {"blocks of 2 with stride 2", {{{0, 2, 2}}}, 5, {5, 7}},
      {"first and last stage", {{{1, 0, 1, {0, 2}}}}, 3, {3, 19}},
      {"not at a named coordinate", {{{1, 0, 1, {0, 2}}}}, 8 + 3, {}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(group_members(role, c.group, c.rank) == c.members);
    if (!c.members.empty()) CHECK(group_size(role, c.group) == static_cast<int>(c.members.size()));
  }
}

TEST_CASE("every member of a group names the same group") {
  Role role{"worker", {Mesh({{"a", 6}, {"b", 4}})}};
  const Group groups[] = {{{{0, 3, 2}}}, {{{0, 2, 1}, {1}}}, {{{1, 2, 2}, {0, 3, 1}}}};
  for (const Group& group : groups)
    for (int r = 0; r < role.size(); ++r) {
      const std::vector<int> members = group_members(role, group, r);
      for (int m : members) CHECK(group_members(role, group, m) == members);
    }
}

TEST_CASE("peers along an axis, of a role, of some of a role") {
  const std::vector<Role> roles = {{"worker", {Mesh({{"data", 2}, {"pipeline", 3}})}},
                                   {"server", {Mesh({{"server", 2}})}}};
  CHECK(peer_ranks(roles, 0, Peer::along(1, 1), 1) == std::vector<int>{3});
  CHECK(peer_ranks(roles, 0, Peer::along(1, 1), 5).empty());
  CHECK(peer_ranks(roles, 0, Peer::along(1, 1, true), 5) == std::vector<int>{1});
  CHECK(peer_ranks(roles, 0, Peer::along(1, -1, true), 0) == std::vector<int>{4});
  CHECK(peer_ranks(roles, 0, Peer::member(1, 1.0), 0) == std::vector<int>{1});
  CHECK(peer_ranks(roles, 1, Peer::each(0, {{1, 2}}), 0) == std::vector<int>{4, 5});
  CHECK(peer_ranks(roles, 0, Peer::each(1), 3) == std::vector<int>{0, 1});
  Quantity by_stage;
  by_stage.axis = 1;
  by_stage.values = {10, 20, 30};
  CHECK(by_stage.at(roles[0], 3) == 20);
}

TEST_CASE("how often an op must have run before another may: steps and repeats") {
  // main: [0] begin x3, [1] body, [2] end, [3] tail; side: [4] begin x3, [5] body, [6] end, [7] once
  Schedule s;
  s.roles = {{"worker", {Mesh({{"data", 1}})}}};
  Program p;
  p.streams = {"main", "side"};
  const auto op = [](OpKind kind, int stream, int count = 1) {
    Op o;
    o.kind = kind;
    o.stream = stream;
    o.count = count;
    return o;
  };
  p.ops = {
      op(OpKind::repeat_begin, 0, 3), op(OpKind::host, 0), op(OpKind::repeat_end, 0), op(OpKind::host, 0),
      op(OpKind::repeat_begin, 1, 3), op(OpKind::host, 1), op(OpKind::repeat_end, 1), op(OpKind::host, 1)};
  s.programs = {p};
  const ProgramIndex index(s, s.programs[0]);
  CHECK(index.per_step == std::vector<int>{1, 3, 3, 1, 1, 3, 3, 1});
  struct Case {
    int op;
    Dependency after;
    long nth, required;
  };
  const Case cases[] = {
      {5, {1, 0}, 1, 1},  {5, {1, 0}, 5, 5},  // both in repeats: round by round
      {7, {1, 0}, 1, 3},  {7, {1, 0}, 2, 6},  // an op outside waits for all rounds of the step
      {5, {3, 0}, 1, 1},  {5, {3, 0}, 3, 1}, {5, {3, 0}, 4, 2},  // each round waits for the step's only run
      {7, {3, 1}, 1, 0},  {7, {3, 1}, 2, 1},                     // waits for the run of the previous step
      {5, {1, 1}, 2, -1}, {5, {1, 1}, 4, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.op, c.after.op, c.nth);
    CHECK(index.required(c.op, c.after, c.nth) == c.required);
  }
}
