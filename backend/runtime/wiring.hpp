// Who sends what to whom on which channel: a schedule's transfers as messages between real ranks.
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

inline constexpr std::size_t kElementBytes = 4;  // collectives add up fp32 numbers, whatever they stand for

// Of a message of a schedule; at least 1, since a message of no bytes has a meaning of its own.
std::size_t message_bytes(const Quantity& amount, const Role& role, int rank);

// A message of an exchange, seen from one of its ends.
struct ExchangePart {
  bool send = false;
  int message = 0;  // of the op
  int peer = 0;     // over all roles
  int channel = 0;
  std::size_t bytes = 0;
  bool rendezvous = true;  // Parcel; false if the receiver takes whoever comes
  int number = 0, of = 1;  // among the ranks that this message names
};

// A collective of a group, as messages between its members.
struct CollectiveWiring {
  std::vector<int> ranks;  // members, over all roles
  int first_channel = 0;   // of connection 0 of the table
  MessageTable table;
  int member_of(int rank) const;
};

// Built alike by all ranks from the schedule alone.
class Wiring {
public:
  // `chunk_bytes`: messages of collectives are at most so large; 0: a ring step's whole share.
  Wiring(const Schedule& schedule, const Cluster& cluster, const std::vector<int>& endpoints,
         double chunk_bytes);

  // That begin or end at the rank.
  std::vector<Channel> channels_of(int rank) const;
  const std::vector<Channel>& channels() const { return channels_; }

  // Messages of an exchange in the op's order; of a receive from anyone, one for each rank that may send, and
  // of a reply one for each that may have sent: `Peer::Kind` of the op's message tells.
  std::vector<ExchangePart> exchange(int rank, int op) const;
  // Null if the rank is alone in its group.
  std::shared_ptr<const CollectiveWiring> collective(int rank, int op) const;
  // Channels on which this rank sends to programs that receive without end.
  std::vector<Channel> endless_channels(int rank) const;
  const Communication& communication() const { return communication_; }
  // Role and rank in it of a rank over all roles.
  std::pair<int, int> place(int rank) const;

private:
  using CollectiveKey = std::tuple<int, int, int, int>;  // transfer, kind, algorithm, channels
  void wire_collectives();
  const Op& op_of(int rank, int op) const;

  const Schedule& schedule_;
  const Cluster& cluster_;
  const std::vector<int> endpoints_;
  const double chunk_bytes_;
  const Communication communication_;
  std::vector<Channel> channels_;
  std::set<int> from_anyone_;  // transfers that are received from whoever comes
  struct Wired {
    CollectivePlan plan;
    int first_channel = 0;
  };
  std::map<CollectiveKey, Wired> collectives_;
  mutable std::map<std::pair<CollectiveKey, std::int64_t>, std::shared_ptr<const CollectiveWiring>> tables_;
};

}  // namespace rehearse
