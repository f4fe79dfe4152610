#include "tests/engine_support.hpp"

namespace rehearse::testing {

std::map<OpRun, double> ends(const Trace& trace) {
  std::map<OpRun, double> all;
  const Spans& s = trace.spans;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const RankClass& c = trace.classes[s.rank_class[i]];
    for (int rank : c.ranks) all[{c.job, c.role, rank, s.op[i], s.step[i], s.iteration[i]}] = s.end_s[i];
  }
  return all;
}

double worst_difference(const Trace& one, const Trace& other) {
  const std::map<OpRun, double> a = ends(one), b = ends(other);
  REQUIRE(a.size() == b.size());
  bool same_ops = true;
  double worst = 0;
  for (auto of_one = a.begin(), of_other = b.begin(); of_one != a.end(); ++of_one, ++of_other) {
    same_ops = same_ops && of_one->first == of_other->first;
    worst = std::max(worst, std::abs(of_one->second - of_other->second) / std::max(of_other->second, 1e-12));
  }
  REQUIRE(same_ops);
  return worst;
}

}  // namespace rehearse::testing
