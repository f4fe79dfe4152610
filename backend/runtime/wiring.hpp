// Maps a schedule's transfers to messages between real ranks: who sends what to whom on which channel.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "backend/runtime/transport.hpp"
#include "simulator/collectives/message_table.hpp"
#include "simulator/schedule/communication.hpp"
#include "simulator/schedule/schedule.hpp"
#include "topologies/cluster.hpp"

namespace rehearse {

inline constexpr std::size_t kElementBytes = 4;  // collectives combine fp32 numbers, whatever they represent

// Returns the bytes of a message of a schedule: at least 1, since a message of zero bytes has a special
// meaning.
std::size_t message_bytes(const Quantity& amount, const Role& role, int rank);

// A message of an exchange, seen from one of its ends.
struct ExchangePart {
  bool send = false;
  int message = 0;  // index in the op
  int peer = 0;     // numbered over all roles
  int channel = 0;
  std::size_t bytes = 0;
  bool rendezvous = true;  // see Parcel; false if the receiver takes messages from anyone
  int number = 0, of = 1;  // the index among the ranks that this message names, and their number
};

// A collective of a group as messages between its members.
struct CollectiveWiring {
  std::vector<int> ranks;  // members, numbered over all roles
  int first_channel = 0;   // that of connection 0 of the message table
  MessageTable table;
  int member_of(int rank) const;
};

// The wiring of a schedule. All ranks build the same one, from the schedule alone.
class Wiring {
public:
  // `chunk_bytes` is the largest size of a collective's messages; 0: the complete share of a ring step.
  Wiring(const Schedule& schedule, const Cluster& cluster, const std::vector<int>& endpoints,
         double chunk_bytes);

  // Returns the channels that begin or end at the rank.
  std::vector<Channel> channels_of(int rank) const;
  const std::vector<Channel>& channels() const { return channels_; }

  // Returns the messages of an exchange in the op's order, without reads from storage. A receive from anyone
  // has a part for each rank that may send, a reply one for each rank that may have sent; the `Peer::Kind` of
  // the op's message distinguishes these cases.
  std::vector<ExchangePart> exchange(int rank, int op) const;
  // Returns null if the rank is alone in its group.
  std::shared_ptr<const CollectiveWiring> collective(int rank, int op) const;
  // Returns the channels on which this rank sends to programs that receive endlessly.
  std::vector<Channel> endless_channels(int rank) const;
  const Communication& communication() const { return communication_; }
  // Returns the role of a rank (numbered over all roles) and its rank in that role.
  std::pair<int, int> place(int rank) const;

private:
  using CollectiveKey = std::tuple<int, int, int, int>;  // transfer, kind, algorithm, channels
  void wire_collectives();
  const Op& op_of(int rank, int op) const;

  const Schedule& schedule_;
  const Cluster& cluster_;
  const std::vector<int> endpoints_;
  const double chunk_bytes_;
  const int processes_;
  const Communication communication_;
  std::vector<Channel> channels_;
  std::set<int> from_anyone_;  // transfers that are received by a receive from anyone
  struct Wired {
    CollectivePlan plan;
    int first_channel = 0;
  };
  std::map<CollectiveKey, Wired> collectives_;
  mutable std::map<std::pair<CollectiveKey, std::int64_t>, std::shared_ptr<const CollectiveWiring>> tables_;
};

}  // namespace rehearse
