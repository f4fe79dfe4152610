// Tests which moves of its ranks a schedule has, and that the ranks that represent others have the same
// classes as in the complete schedule.
#include "simulator/schedule/folding.hpp"
#include "simulator/schedule/rank_symmetry.hpp"
#include "tests/catch.hpp"
#include "tests/schedule_builders.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

constexpr int kTensorAxis = 0, kDataAxis = 1, kPipelineAxis = 2;

// tensor 2 x data 12 x pipeline 3: tensor ranks sum, stages send to the next one, replicas sum by `group`.
Schedule replicas(Group group, Algorithm algorithm = Algorithm::ring) {
  Schedule s;
  s.roles = {role("worker", {{"tensor", 2}, {"data", 12}, {"pipeline", 3}})};
  s.works = {work(0.01)};
  for (int stage = 0; stage < 3; ++stage) {
    Program p;
    p.name = "stage";
    p.where = {{kPipelineAxis, stage}};
    p.streams = {"compute", "gradients"};
    if (stage > 0) p.ops.push_back(exchange("r", 0, {receive(Peer::along(kPipelineAxis, -1), 1e6)}));
    p.ops.push_back(compute("c", 0, 0));
    p.ops.push_back(all_reduce("t", 0, {{{kTensorAxis}}}, 1e6));
    if (stage < 2) p.ops.push_back(exchange("s", 0, {send(Peer::along(kPipelineAxis, 1), 1e6)}));
    p.ops.push_back(all_reduce("d", 1, group, 1e7));
    p.ops.back().collective.algorithm = algorithm;
    s.programs.push_back(p);
  }
  return s;
}

GroupAxis part_of_data(int block, int stride) {
  GroupAxis part;
  part.axis = kDataAxis;
  part.block = block;
  part.stride = stride;
  return part;
}

}  // namespace

TEST_CASE("ranks move along the axis that tells none of them apart") {
  GroupAxis ends;
  ends.axis = kDataAxis;
  ends.coordinates = {0, 11};
  struct Case {
    const char* what;
    Schedule schedule;
    int ranks_per_move, copies;
  };
  const Case cases[] = {
      {"a ring over all replicas turns by one", replicas({{{kDataAxis}}}), 1, 12},
      {"or by whole nodes of 8 ranks, which are 4 replicas", replicas({{{kDataAxis}}}), 8, 3},
      {"nodes of 16 ranks do not divide the axis", replicas({{{kDataAxis}}}), 16, 1},
      {"blocks of 3 replicas move as a whole", replicas({{part_of_data(3, 1)}}), 1, 4},
      {"replicas 3 apart turn by 3", replicas({{part_of_data(4, 3)}}), 1, 4},
      {"replicas 2 apart in blocks of 6", replicas({{part_of_data(3, 2)}}), 2, 2},
      {"tensor ranks inside the ring's replicas turn with them", replicas({{{kTensorAxis}, {kDataAxis}}}), 1,
       12},
      {"replicas inside tensor ranks do not", replicas({{{kDataAxis}, {kTensorAxis}}}), 2, 1},
      {"but the tensor ranks then turn", replicas({{{kDataAxis}, {kTensorAxis}}}), 1, 2},
      {"listed replicas stay", replicas({{ends}}), 2, 1},
      {"a tree does not turn", replicas({{{kDataAxis}}}, Algorithm::tree), 2, 1},
  };
  for (const Case& c : cases) {
    CAPTURE(c.what);
    CHECK(find_symmetry(c.schedule, c.ranks_per_move).copies() == c.copies);
  }
}

TEST_CASE("amounts, peers and places along an axis hold its ranks") {
  Schedule uneven = replicas({{{kDataAxis}}});
  uneven.programs[0].ops[0].share = {1.0};
  uneven.programs[0].ops[0].share.axis = kDataAxis;
  uneven.programs[0].ops[0].share.values.assign(12, 1.0);
  CHECK(find_symmetry(uneven).copies() == 2);  // along the tensor axis
  Schedule neighbours = replicas({{{kDataAxis}}});
  neighbours.programs[0].ops.push_back(exchange(
      "n", 0, {send(Peer::along(kDataAxis, 1, true), 1), receive(Peer::along(kDataAxis, -1, true), 1)}));
  CHECK(find_symmetry(neighbours).copies() == 2);
  Schedule two_roles = replicas({{{kDataAxis}}});
  two_roles.roles.push_back(role("server", {{"server", 1}}));
  CHECK(find_symmetry(two_roles).copies() == 1);
}

TEST_CASE("ranks that represent others have the classes of the complete schedule") {
  for (const int ranks_per_move : {1, 2, 4, 8, 24}) {
    CAPTURE(ranks_per_move);
    const Schedule s = replicas({{{kTensorAxis}, {kDataAxis}}});
    const RankSymmetry symmetry = find_symmetry(s, ranks_per_move);
    const auto classes = [&](const Communication& talk) {
      Hypergraph graph;
      const RankColours colours(s);
      for (int n = 0; n < talk.symmetry().representatives(s.ranks()); ++n)
        graph.node_colour.push_back(colours.of(0, talk.symmetry().rank_of(n)));
      add_transfers(graph, talk, 0, 0);
      return coarsest_equitable_partition(graph);
    };
    const Communication all(s), some(s, symmetry);
    const Partition whole = classes(all), folded = classes(some);
    CHECK(whole.node_classes == folded.node_classes);
    CHECK(whole.edge_classes == folded.edge_classes);
    for (int rank = 0; rank < s.ranks(); ++rank)
      CHECK(whole.node_class[rank] == folded.node_class[symmetry.number_of(rank)]);
    // Each transfer of a representing rank is that of the complete schedule, in the same class.
    for (int n = 0; n < symmetry.representatives(s.ranks()); ++n) {
      const int rank = symmetry.rank_of(n),
                slots = static_cast<int>(all.slots_of(all.program_of_rank(rank)).size());
      CHECK(symmetry.number_of(rank) == n);
      CHECK(symmetry.represents(rank));
      for (int slot = 0; slot < slots; ++slot) {
        REQUIRE(all.at(rank, slot).size() == some.at(rank, slot).size());
        for (std::size_t i = 0; i < all.at(rank, slot).size(); ++i) {
          const int a = all.at(rank, slot)[i], b = some.at(rank, slot)[i];
          CHECK(all.transfers[a].ranks == some.transfers[b].ranks);
          CHECK(whole.edge_class[a] == folded.edge_class[b]);
        }
      }
    }
  }
}
