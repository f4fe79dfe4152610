// Describes what a run puts on the network, as the hypergraph that folding refines: the ranks, the transfers,
// the flows of each transfer, and the links that each flow crosses.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/collectives/message_table.hpp"
#include "simulator/costs/engine_options.hpp"
#include "simulator/costs/transfer.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/schedule/partition.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// A link touches a flow with this label plus its weight; smaller labels are those of ranks and collectives.
inline constexpr std::uint32_t kLinkLabel = 16;

struct FlowGraph {
  struct RankNode {
    int job = 0, role = 0, rank = 0, endpoint = 0;
  };
  // Anything that moves bytes over links: an edge of the hypergraph and a flow of the simulation.
  struct Flow {
    int edge = 0;  // in the hypergraph
    int transfer = 0;
    double latency_s = 0;  // of its slowest route
    double slowest_bandwidth = 0;
    int hops = 0;
    bool may_overlap = false;
    int lane = -1, stage = 0;  // of a collective schedule other than a ring's
  };
  // A lane of a collective schedule other than a ring's; its flows follow one another.
  struct LaneInfo {
    int node = 0;  // node that its flows touch
    int transfer = 0;
    std::vector<int> flows;  // by phase of the lane
  };
  struct TransferInfo {
    int job = 0, phase = 0, number = 0;  // in the phase's Communication
    int edge = -1;                       // message: its flow's edge; collective: -1
    int node = -1;                       // collective: its node
    int channels = 1;
    Course course = Course::ring;
    Access access;  // of a message
    TransferShape shape;
    std::vector<int> ranks;  // rank nodes of its members
    bool spread = false;     // under a symmetry: see Transfer
    std::vector<int> flows;
    Algorithm algorithm = Algorithm::ring;
    std::vector<int> lanes;                       // only of algorithms other than ring
    PlanOnNetwork plan;                           // only of these, without links
    std::shared_ptr<const CollectivePlan> steps;  // only of these, at `chunk`, where a flow is a connection
  };
  // At `chunk`: a rank's place in one ring.
  struct Place {
    int node = 0, rank_node = 0;
    int previous = -1, next = -1;  // nodes of the neighbours
    int flow = -1;                 // on which it receives
    int transfer = 0;
  };

  // The moves under which the entire run, its flows and its links are the same. Ranks, transfers, flows and
  // links below are those of the ranks that represent others; each stands for its copies.
  RankSymmetry symmetry;
  // Number of transfers that an info, and of flows that one of its flows, stands for.
  int copies_of(const TransferInfo& info) const { return info.spread ? 1 : symmetry.copies(); }

  Hypergraph graph;  // nodes: ranks, then collectives, lanes and places, then links
  // False if some schedule cannot be folded, or if connections of another algorithm than ring are at `chunk`.
  bool foldable = true;
  std::vector<RankNode> ranks;
  std::vector<TransferInfo> transfers;
  std::vector<Flow> flows;
  std::vector<LaneInfo> lanes;
  std::vector<Place> places;
  std::unordered_map<int, int> place_of_node;
  std::vector<LinkId> links;  // links that flows use, in the order of their nodes
  int first_link_node = 0;
  std::set<LinkId> changing_links;                                               // links that events change
  std::map<std::pair<int, int>, int> first_transfer;                             // by job and phase
  std::vector<std::vector<std::shared_ptr<const Communication>>> communication;  // by job and phase
};

// Throws RunError if an endpoint does not exist.
FlowGraph build_flow_graph(const Run& run, const Cluster& cluster, const EngineOptions& options);

// Returns whether the role has this rank in the phase.
bool in_phase(const Phase& phase, int role, int rank);

}  // namespace rehearse
