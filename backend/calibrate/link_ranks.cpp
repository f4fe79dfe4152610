#include "backend/calibrate/link_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "backend/calibrate/transport_links.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/placement.hpp"
#include "backend/runtime/wiring.hpp"

namespace rehearse {
namespace {

// The orders of rank 0 to the ranks in a trial. The others regularly get kGoesOn, or they would assume that
// rank 0 is dead.
constexpr std::int64_t kOver = -1, kGoesOn = -2;
constexpr double kTellEvery_s = 0.5;
struct Order {
  std::int64_t trial = kOver, bytes = 0;
};

// Returns the largest message of a collective whose members each hold the complete buffer, which for an
// all-to-all has a part for each pair.
double most_message_bytes(CollectiveKind kind, int members, double most_buffer_bytes) {
  constexpr double kLeast = 1024;
  const double messages =
      kind == CollectiveKind::all_to_all ? static_cast<double>(members) * members : members;
  return std::max(kLeast, most_buffer_bytes / messages);
}

}  // namespace

LinkRanks::LinkRanks(Transport& transport, const std::string& node, std::unique_ptr<LinkCarrier> carrier)
    : transport_(transport), carrier_(carrier ? std::move(carrier) : transport_links(transport)) {
  const std::vector<std::string> nodes = all_gather(transport, node);
  std::vector<int> near, heads, all;  // ranks of rank 0's node; the first rank of each node; all ranks
  std::set<std::string> known;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    all.push_back(rank);
    if (nodes[rank] == nodes[0]) near.push_back(rank);
    if (known.insert(nodes[rank]).second) heads.push_back(rank);
  }
  nodes_ = static_cast<int>(heads.size());
  if (near.size() > 1) groups_.push_back({Reach::in_node, {0, near[1]}});
  if (heads.size() > 1) groups_.push_back({Reach::between_nodes, {0, heads[1]}});
  for (const auto& [reach, ranks] : {std::pair(Reach::in_node, near), {Reach::between_nodes, heads}}) {
    const int most = static_cast<int>(ranks.size());
    for (int members = 2; most > 1; members = std::min(2 * members, most)) {
      add_collectives(reach, {ranks.begin(), ranks.begin() + members});
      if (members == most) break;
    }
  }
  if (heads.size() > 1 && heads.size() < all.size()) add_collectives(Reach::between_nodes, all);
  carrier_->open(groups_);
  told_at_s_.assign(static_cast<std::size_t>(transport.ranks()), monotonic_s());
}

void LinkRanks::add_collectives(Reach reach, const std::vector<int>& ranks) {
  for (std::size_t kind = 0; kind < kCollectiveNames.size(); ++kind)
    if (carrier_->carries(static_cast<CollectiveKind>(kind)))
      groups_.push_back({reach, ranks, true, static_cast<CollectiveKind>(kind)});
}

void LinkRanks::order(int trial, double bytes) {
  const auto say = [&](int rank, Order order) {
    carry_value(transport_, Parcel::Kind::send, rank, order);
    told_at_s_[rank] = monotonic_s();
  };
  if (trial < 0) {
    for (int rank = 1; rank < transport_.ranks(); ++rank) say(rank, {kOver, 0});
    return;
  }
  const std::vector<int>& ranks = groups_[static_cast<std::size_t>(trial)].ranks;
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank)
    say(*rank, {trial, static_cast<std::int64_t>(bytes)});
  for (int rank = 1; rank < transport_.ranks(); ++rank)
    if (monotonic_s() - told_at_s_[rank] > kTellEvery_s) say(rank, {kGoesOn, 0});
  // Members answer before the trial begins, so that all of them are there.
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank) {
    Order answer;
    carry_value(transport_, Parcel::Kind::receive, *rank, answer);
  }
}

std::vector<LinkTrial> LinkRanks::trials() {
  std::vector<LinkTrial> all;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const LinkGroup& group = groups_[i];
    LinkTrial& told = all.emplace_back();
    told.reach = group.reach;
    told.ranks = group.collective ? static_cast<int>(group.ranks.size()) : 0;
    told.kind = group.kind;
    told.members = group.ranks;
    if (group.collective)
      told.most_message_bytes = most_message_bytes(group.kind, told.ranks, carrier_->most_buffer_bytes());
    told.time_s = [this, i](double bytes) {
      const double whole = std::max<double>(kElementBytes, std::round(bytes / 4) * 4);
      order(static_cast<int>(i), whole);
      return carrier_->time_s(i, static_cast<std::size_t>(whole));
    };
  }
  return all;
}

void LinkRanks::follow() {
  while (true) {
    Order order;
    carry_value(transport_, Parcel::Kind::receive, 0, order);
    if (order.trial == kOver) return;
    if (order.trial == kGoesOn) continue;
    carry_value(transport_, Parcel::Kind::send, 0, order);
    carrier_->time_s(static_cast<std::size_t>(order.trial), static_cast<std::size_t>(order.bytes));
  }
}

void LinkRanks::end() {
  order(-1, 0);
}

}  // namespace rehearse
