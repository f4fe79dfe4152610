// A run laid out on a cluster and folded: rank classes, what each does over which links, and what stands for
// what.
#pragma once

#include <memory>
#include <vector>

#include "simulator/collectives/cost.hpp"
#include "simulator/costs/engine_options.hpp"
#include "simulator/costs/transfer.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/schedule/program_index.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

// Equal flows through the network, simulated as one: a message, one channel of a coupled collective, one
// stage of one lane of its plan, or (at `chunk`) one edge of a ring or one connection of a plan.
struct FlowClass {
  struct Crossing {
    int link_class = 0;
    int weight = 0;      // how often the flows of this class, all together, cross ONE link of the link class
    int own_weight = 0;  // how often one transfer's flows cross it
  };
  std::vector<Crossing> crossings;
  double latency_s = 0;              // of its slowest route
  double inverse_bandwidth = 0;      // s/byte of one flow, all flows of the class under way, nothing else
  double own_inverse_bandwidth = 0;  // s/byte of one flow, its own transfer alone on the network
  double hops = 0;  // routes in it: 1 for a message or an edge, n for a ring, n (n-1) for an all-to-all
  bool contended =
      false;  // other flows cross its links, or it may overlap with itself, or an event hits them
  bool always_flow = false;  // an event changes one of its links, or its users have to share it
  int members = 1;
};

// Equal transfers. Message: participants {sender, receiver}; collective: the classes of its members, each
// once.
struct TransferClass {
  bool collective = false;
  bool pairwise =
      false;  // an all-to-all: one flow over the routes of all pairs, each carrying a pair's bytes
  std::vector<int> participants;
  std::vector<int> flows;  // classes; a message has one, a coupled collective one for each class of channels
  int channels = 1;
  TransferShape shape;
  int first_rank = 0, second_rank = 0;  // a message's ends in the representative transfer
  int members = 1;

  // All-reduces other than a ring's.
  Algorithm algorithm = Algorithm::ring;
  struct StageClass {
    int flow = 0;  // class
    StageOnNetwork costs;
  };
  std::vector<std::vector<StageClass>> lanes;   // one of each class
  PlanOnNetwork plan;                           // chunk: of all lanes
  std::shared_ptr<const CollectivePlan> steps;  // chunk
  std::vector<int> connections;                 // chunk: flow classes, by connection
  std::vector<int> member_classes;              // chunk: rank classes, by member
};

// At `chunk`: a rank's place in one ring. It receives along `flow` from `previous`.
struct RingPosition {
  int previous = -1, next = -1;
  int flow = -1;
  int rank_class = 0;
};

struct LinkClass {
  LinkId representative = 0;
  int members = 1;
  double bandwidth = 0;
};

// What one rank class does in one phase.
struct ClassProgram {
  int program = -1;                         // -1: the rank takes no part in the phase
  std::vector<std::vector<int>> transfers;  // by slot: transfer classes
  std::vector<std::vector<int>> positions;  // by slot: ring positions (chunk)
  std::vector<double> seconds;  // by work: how long it takes on this class's device, at its first speed
  // By op of the first stream: how long the process takes to issue it and what other streams run between it
  // and the op before. Empty: no time.
  std::vector<double> launch_s;
  std::vector<char> waits;  // beside launch_s: whether the process waits for the op before; empty: never
  // By op: computing that collectives may slow down, and those collectives (concurrency.hpp). Empty: none.
  std::vector<bool> beside;
};

struct Layout {
  struct Class {
    int job = 0, role = 0;
    std::vector<int> ranks;  // of the role, ascending
    int endpoint = 0;        // of the first
    std::vector<ClassProgram> phases;
  };
  std::vector<Class> classes;
  std::vector<TransferClass> transfers;
  std::vector<FlowClass> flows;
  std::vector<LinkClass> links;
  std::vector<RingPosition> positions;
  bool interferes = false;  // some class computes beside collectives that slow it down
  // By job and phase.
  std::vector<std::vector<std::shared_ptr<const Communication>>> communication;
  std::vector<std::vector<std::vector<ProgramIndex>>> index;

  // Class of a link that an event names; -1 if no transfer uses it.
  int class_of_link(LinkId link) const;
  std::vector<std::pair<LinkId, int>> link_class_of;  // ascending by link
};

// RunError for endpoints or links that do not exist.
Layout lay_out(const Run& run, const Cluster& cluster, const EngineOptions& options);

}  // namespace rehearse
