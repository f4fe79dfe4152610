// Lays a run out on a cluster and folds equal ranks, transfers, flows and links into classes: what each rank
// class does over which links, and what each class represents.
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

// Equal flows through the network, which are simulated as one: a message, one channel of a coupled
// collective, one phase of one lane of a collective schedule, or (at `chunk`) one edge of a ring or one
// connection of a collective schedule.
struct FlowClass {
  struct Crossing {
    int link_class = 0;
    int weight = 0;      // how often all flows of this class together cross ONE link of the link class
    int own_weight = 0;  // how often the flows of one transfer cross it
  };
  std::vector<Crossing> crossings;
  double latency_s = 0;              // of its slowest route
  double most_bytes_per_s = 0;       // of one flow, whatever the links carry; 0: unlimited
  double inverse_bandwidth = 0;      // s/byte of one flow while only flows of the class are active
  double own_inverse_bandwidth = 0;  // s/byte of one flow while its own transfer is alone on the network
  double hops = 0;  // number of routes: 1 for a message or an edge, n for a ring, n (n-1) for an all-to-all
  // Other flows cross its links, it may overlap with itself, or an event changes its links.
  bool contended = false;
  bool always_flow = false;  // an event changes one of its links, or the link's users have to share it
  int members = 1;
};

// Equal transfers, which are simulated as one. The participants of a message are {sender, receiver}; those of
// a collective are the classes of its members, each once.
struct TransferClass {
  bool collective = false;
  // An all-to-all: one flow over the routes of all pairs, each of which carries one pair's bytes.
  bool pairwise = false;
  std::vector<int> participants;
  std::vector<int> flows;  // classes: one of a message, one for each class of channels of a collective
  int channels = 1;
  TransferShape shape;
  int first_rank = 0, second_rank = 0;  // ends of a message in the representative transfer
  int members = 1;

  // All-reduces with an algorithm other than ring.
  Algorithm algorithm = Algorithm::ring;
  struct StageClass {
    int flow = 0;  // flow class
    StageOnNetwork costs;
  };
  std::vector<std::vector<StageClass>> lanes;   // one lane of each class
  PlanOnNetwork plan;                           // chunk: costs of all lanes
  std::shared_ptr<const CollectivePlan> steps;  // chunk: collective schedule
  std::vector<int> connections;                 // chunk: flow classes, by connection
  std::vector<int> member_classes;              // chunk: rank classes, by member
};

// At `chunk`: the place of a rank in one ring, where it receives along `flow` from `previous`.
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

// What one rank class does in one phase of its job.
struct ClassProgram {
  int program = -1;                         // -1: the rank takes no part in the phase
  std::vector<std::vector<int>> transfers;  // by slot: transfer classes
  std::vector<std::vector<int>> positions;  // by slot: ring positions (chunk)
  std::vector<double> seconds;  // by work item: its time on this class's device at its initial speed
  // By op of the first stream: how long the process takes to issue it and what other streams run between it
  // and the previous op. Empty: no time.
  std::vector<double> launch_s;
  std::vector<char> waits;  // beside launch_s: whether the process waits for the previous op; empty: never
  // By op: compute ops that collectives may slow down, and those collectives (concurrency.hpp). Empty: none.
  std::vector<bool> beside;
};

struct Layout {
  struct Class {
    int job = 0, role = 0;
    std::vector<int> ranks;  // numbers in the role, ascending
    int endpoint = 0;        // of the first rank
    std::vector<ClassProgram> phases;
  };
  std::vector<Class> classes;
  std::vector<TransferClass> transfers;
  std::vector<FlowClass> flows;
  std::vector<LinkClass> links;
  std::vector<RingPosition> positions;
  bool interferes = false;  // some class computes beside collectives, which slow it down
  // Both by job and phase; `index` also by program.
  std::vector<std::vector<std::shared_ptr<const Communication>>> communication;
  std::vector<std::vector<std::vector<ProgramIndex>>> index;

  // Returns the class of a link that an event names; -1 if no transfer uses the link.
  int class_of_link(LinkId link) const;
  std::vector<std::pair<LinkId, int>> link_class_of;  // sorted by link
};

// Throws RunError if an endpoint does not exist.
Layout lay_out(const Run& run, const Cluster& cluster, const EngineOptions& options);

}  // namespace rehearse
