// Tests message tables executed in rounds, as on GPUs: every member must end up with the sum.
#include <algorithm>
#include <random>
#include <vector>

#include "backend/runtime/table_rounds.hpp"
#include "tests/catch.hpp"
#include "tests/collectives_clusters.hpp"

using namespace rehearse;
using namespace rehearse::testing;

namespace {

// Executes each round on all members at once; members send what they had at the start of the round.
std::vector<std::vector<float>> carry_out(const MessageTable& table,
                                          std::vector<std::vector<float>> buffers) {
  const int members = table.members;
  std::vector<std::vector<TableRound>> rounds;
  std::size_t count = 0;
  for (int m = 0; m < members; ++m) {
    rounds.push_back(table_rounds(table, m, buffers[static_cast<std::size_t>(m)].size() * sizeof(float)));
    count = std::max(count, rounds.back().size());
  }
  for (std::size_t round = 0; round < count; ++round) {
    const std::vector<std::vector<float>> before = buffers;
    std::vector<std::size_t> taken(static_cast<std::size_t>(members * members), 0);
    for (int m = 0; m < members; ++m) {
      if (round >= rounds[static_cast<std::size_t>(m)].size()) continue;
      for (const TablePiece& piece : rounds[static_cast<std::size_t>(m)][round].pieces) {
        if (piece.send) continue;
        // Find the sender's next message to this member in this round.
        std::size_t number = taken[static_cast<std::size_t>(piece.peer * members + m)]++;
        const auto& sent = rounds[static_cast<std::size_t>(piece.peer)];
        REQUIRE(round < sent.size());
        const TablePiece* found = nullptr;
        for (const TablePiece& other : sent[round].pieces)
          if (other.send && other.peer == m && number-- == 0) found = &other;
        REQUIRE(found != nullptr);
        REQUIRE((found->begin == piece.begin && found->bytes == piece.bytes));
        for (std::size_t i = piece.begin / 4; i < (piece.begin + piece.bytes) / 4; ++i) {
          float& to = buffers[static_cast<std::size_t>(m)][i];
          to = before[static_cast<std::size_t>(piece.peer)][i] + (piece.reduce ? to : 0);
        }
      }
    }
  }
  return buffers;
}

}  // namespace

TEST_CASE("All-reduces in rounds end with the sum at every member") {
  struct Case {
    Algorithm algorithm;
    ClusterParts cluster;
  };
  std::vector<Case> cases;
  for (const int n : {2, 3, 4, 5, 8})
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling, Algorithm::recursive_doubling})
      cases.push_back({algorithm, star_of(n)});
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::hierarchical})
    cases.push_back({algorithm, dgx_like(2)});
  cases.push_back({Algorithm::torus, torus_of({2, 3})});
  cases.push_back({Algorithm::torus, torus_of({4, 3}, 3)});
  std::mt19937 random(7);
  for (const Case& c : cases)
    for (const std::int64_t elements : {1, 7, 100})
      for (const Cut& cut : {Cut{}, Cut{3, 5}}) {
        const auto cluster = make_cluster(c.cluster);
        CAPTURE(kAlgorithmNames[static_cast<std::size_t>(c.algorithm)], cluster->devices(), elements,
                cut.most);
        const CollectivePlan plan = collective_plan(c.algorithm, *cluster, all_devices(*cluster), 0);
        std::vector<std::vector<float>> buffers(static_cast<std::size_t>(plan.members));
        std::vector<float> sum(static_cast<std::size_t>(elements), 0);
        for (std::vector<float>& buffer : buffers)
          for (float& total : sum) {  // sums of whole numbers are exact in any order
            buffer.push_back(static_cast<float>(std::uniform_int_distribution<int>(-1000, 1000)(random)));
            total += buffer.back();
          }
        for (const std::vector<float>& buffer :
             carry_out(message_table(CollectiveKind::all_reduce, plan, elements, cut), buffers))
          REQUIRE(buffer == sum);
      }
}
