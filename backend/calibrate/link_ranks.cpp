#include "backend/calibrate/link_ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <sstream>

#include "backend/host/host_hardware.hpp"
#include "backend/runtime/collective_table.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/wiring.hpp"

namespace rehearse {
namespace {

// What rank 0 tells those that take part; trial -1: it is over.
struct Order {
  std::int64_t trial = -1, bytes = 0;
};

void move(Transport& transport, Parcel::Kind kind, int peer, int channel, void* data, std::size_t bytes) {
  Parcel parcel;
  parcel.kind = kind;
  parcel.peer = peer;
  parcel.channel = channel;
  parcel.data = static_cast<std::byte*>(data);
  parcel.bytes = bytes;
  carry(transport, {&parcel});
}

// On which node each rank is, by the name of its host.
std::vector<std::string> hosts_of(Transport& transport) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string all;
  for (const std::string& host : gather(transport, name.data())) all += host + '\n';
  std::istringstream lines(broadcast(transport, all));
  std::vector<std::string> hosts;
  for (std::string line; std::getline(lines, line);) hosts.push_back(line);
  return hosts;
}

CollectivePlan ring_of(int members) {
  CollectivePlan plan;
  plan.members = members;
  std::vector<int> order(static_cast<std::size_t>(members));
  std::iota(order.begin(), order.end(), 0);
  Lane& lane = plan.lanes.emplace_back();
  lane.stages.emplace_back().groups = {order};
  return plan;
}

// As many collectives in a row as make the time of ordering them small.
int in_a_row(std::size_t bytes) {
  return bytes < 65536 ? 16 : 4;
}

}  // namespace

struct LinkRanks::Trial {
  Reach reach = Reach::in_node;
  std::vector<int> ranks;  // rank 0 first
  bool collective = false;
  CollectiveKind kind = CollectiveKind::all_reduce;
  int first_channel = 0;
  CollectivePlan plan;
};

LinkRanks::LinkRanks(Transport& transport) : transport_(transport) {
  const std::vector<std::string> hosts = hosts_of(transport);
  const int ranks = transport.ranks();
  std::vector<Channel> channels;
  for (const bool near : {true, false})
    for (int peer = 1; peer < ranks; ++peer) {
      if ((hosts[peer] == hosts[0]) != near) continue;
      Trial& trial = trials_.emplace_back();
      trial.reach = near ? Reach::in_node : Reach::between_nodes;
      trial.ranks = {0, peer};
      trial.first_channel = static_cast<int>(channels.size());
      channels.push_back({0, peer, trial.first_channel});
      channels.push_back({peer, 0, trial.first_channel + 1});
      break;
    }
  for (int members = 2; ranks > 1; members = std::min(2 * members, ranks)) {
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
      Trial& trial = trials_.emplace_back();
      trial.collective = true;
      trial.kind = kind;
      trial.plan = ring_of(members);
      trial.ranks = trial.plan.lanes.front().stages.front().groups.front();
      for (const int rank : trial.ranks)
        if (hosts[rank] != hosts[0]) trial.reach = Reach::between_nodes;
      trial.first_channel = static_cast<int>(channels.size());
      for (const MessageTable::Connection& c : collective_connections(kind, trial.plan))
        channels.push_back({c.from, c.to, static_cast<int>(channels.size())});
    }
    if (members == ranks) break;
  }
  transport.open(channels);
}

LinkRanks::~LinkRanks() = default;

double LinkRanks::perform(const Trial& trial, std::size_t bytes) {
  if (buffer_.size() < bytes) buffer_.resize(bytes, std::byte{});
  if (!trial.collective) {
    const int there = trial.first_channel, back = there + 1, peer = trial.ranks.back();
    const double begin_s = monotonic_s();
    if (transport_.rank() == 0) {
      move(transport_, Parcel::Kind::send, peer, there, buffer_.data(), bytes);
      move(transport_, Parcel::Kind::receive, peer, back, buffer_.data(), bytes);
    } else {
      move(transport_, Parcel::Kind::receive, 0, there, buffer_.data(), bytes);
      move(transport_, Parcel::Kind::send, 0, back, buffer_.data(), bytes);
    }
    return (monotonic_s() - begin_s) / 2;
  }
  CollectiveWiring wiring;
  wiring.ranks = trial.ranks;
  wiring.first_channel = trial.first_channel;
  wiring.table =
      collective_table(trial.kind, trial.plan, static_cast<std::int64_t>(bytes / kElementBytes), {}, 0);
  const auto run = [&] {
    run_table(transport_, wiring, transport_.rank(), reinterpret_cast<float*>(buffer_.data()));
  };
  run();
  const int times = in_a_row(bytes);
  const double begin_s = monotonic_s();
  for (int i = 0; i < times; ++i) run();
  return (monotonic_s() - begin_s) / times;
}

void LinkRanks::order(int trial, double bytes) {
  Order order{trial, static_cast<std::int64_t>(bytes)};
  // Answered before it begins, so that everybody is there.
  const auto tell = [&](int rank) {
    move(transport_, Parcel::Kind::send, rank, kControlChannel, &order, sizeof order);
  };
  if (trial < 0) {
    for (int rank = 1; rank < transport_.ranks(); ++rank) tell(rank);
    return;
  }
  const std::vector<int>& ranks = trials_[trial].ranks;
  std::for_each(ranks.begin() + 1, ranks.end(), tell);
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank) {
    Order answer;
    move(transport_, Parcel::Kind::receive, *rank, kControlChannel, &answer, sizeof answer);
  }
}

std::vector<LinkTrial> LinkRanks::trials() {
  std::vector<LinkTrial> all;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = trials_[i];
    all.push_back({trial.reach, trial.collective ? static_cast<int>(trial.ranks.size()) : 0, trial.kind,
                   [this, i](double bytes) {
                     const double whole = std::max<double>(kElementBytes, std::round(bytes / 4) * 4);
                     order(static_cast<int>(i), whole);
                     return perform(trials_[i], static_cast<std::size_t>(whole));
                   }});
  }
  return all;
}

void LinkRanks::follow() {
  while (true) {
    Order order;
    move(transport_, Parcel::Kind::receive, 0, kControlChannel, &order, sizeof order);
    if (order.trial < 0) return;
    move(transport_, Parcel::Kind::send, 0, kControlChannel, &order, sizeof order);
    perform(trials_[static_cast<std::size_t>(order.trial)], static_cast<std::size_t>(order.bytes));
  }
}

void LinkRanks::end() {
  order(-1, 0);
}

}  // namespace rehearse
