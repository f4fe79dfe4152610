// Computes which links the transfers of a trace cross, and how much of their payload each of them carries.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/schedule/communication.hpp"
#include "simulator/trace/trace.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// The bytes that the ranks of a class together send over one link, as a multiple of the op's bytes.
struct LinkCrossing {
  LinkId link = 0;
  double times = 0;
};

class LinkCrossings {
public:
  // `watched`: by link, whether it is of interest; empty: all are.
  LinkCrossings(const Trace& trace, const Cluster& cluster, std::vector<bool> watched = {});

  // A message of an exchange, or a collective: its bytes, and the pattern of their multiples by link.
  struct Part {
    int pattern = 0;  // index for crossings()
    double bytes = 0;
  };
  // Returns the parts that the ranks of the op in `row` send; each member of a collective counts what it
  // sends itself.
  const std::vector<Part>& parts(std::size_t row);
  // Returns the crossings of a pattern, ascending by link.
  const std::vector<LinkCrossing>& crossings(int pattern) const { return patterns_[pattern]; }
  int patterns() const { return static_cast<int>(patterns_.size()); }

private:
  struct Hop {
    Endpoint to = 0;
    int rail = -1;
    double times = 1;
  };
  using Sums = std::map<LinkId, double>;
  const Communication& communication_of(const Schedule& schedule);
  int pattern_of(std::size_t row, int part);
  void add_route(Endpoint from, Endpoint to, int rail, double times, Sums& into);
  void add_collective(const Schedule& schedule, const Job& job, int number, const Slot& slot, int rank,
                      Sums& into);
  std::unordered_map<int, std::vector<Hop>> hops_of(const Collective& how, const std::vector<int>& ranks,
                                                    const Job& job) const;

  const Trace& trace_;
  const Cluster& cluster_;
  std::vector<bool> watched_;
  std::vector<std::vector<LinkCrossing>> patterns_;
  std::vector<Part> parts_;
  std::map<const Schedule*, std::unique_ptr<Communication>> communications_;
  std::map<std::tuple<const Schedule*, int, int>, int> pattern_of_slot_;  // schedule, class, slot
  std::map<std::tuple<const Schedule*, int, int>, std::unordered_map<int, std::vector<Hop>>>
      hops_;  // schedule, transfer, channels: by rank
  std::vector<LinkId> route_;
};

}  // namespace rehearse
