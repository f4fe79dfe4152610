#include "backend/calibrate/link_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "backend/host/host_hardware.hpp"
#include "backend/runtime/collective_table.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/placement.hpp"
#include "backend/runtime/wiring.hpp"
#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

// What rank 0 tells those that take part in a trial. The others hear now and then that it goes on, or they
// would take it for dead.
constexpr std::int64_t kOver = -1, kGoesOn = -2;
constexpr double kTellEvery_s = 0.5;
struct Order {
  std::int64_t trial = kOver, bytes = 0;
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

CollectivePlan ring_of(int members) {
  CollectivePlan plan;
  plan.members = members;
  std::vector<int> order(static_cast<std::size_t>(members));
  std::iota(order.begin(), order.end(), 0);
  Lane& lane = plan.lanes.emplace_back();
  lane.stages.emplace_back().groups = {order};
  return plan;
}

// Of the buffers of a collective, which are whole at every member: an all-to-all's has a part for each pair.
double most_message_bytes(CollectiveKind kind, int members) {
  constexpr double kMostBuffer = 256 * 1048576.0, kLeast = 1024;
  const double messages =
      kind == CollectiveKind::all_to_all ? static_cast<double>(members) * members : members;
  return std::max(kLeast, kMostBuffer / messages);
}

// As many collectives in a row as make the time of ordering them small.
int in_a_row(std::size_t bytes) {
  return bytes < 65536 ? 16 : bytes < 1048576 ? 4 : 1;
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

LinkRanks::LinkRanks(Transport& transport, const std::string& node) : transport_(transport) {
  const std::vector<std::string> nodes = all_gather(transport, node);
  std::vector<int> near, heads, all;  // of rank 0's node; the first of each node
  std::set<std::string> known;
  for (int rank = 0; rank < transport.ranks(); ++rank) {
    all.push_back(rank);
    if (nodes[rank] == nodes[0]) near.push_back(rank);
    if (known.insert(nodes[rank]).second) heads.push_back(rank);
  }
  nodes_ = static_cast<int>(heads.size());
  std::vector<Channel> channels;
  if (near.size() > 1) add_messages(Reach::in_node, near[1], channels);
  if (heads.size() > 1) add_messages(Reach::between_nodes, heads[1], channels);
  for (const auto& [reach, ranks] : {std::pair(Reach::in_node, near), {Reach::between_nodes, heads}}) {
    const int most = static_cast<int>(ranks.size());
    for (int members = 2; most > 1; members = std::min(2 * members, most)) {
      add_collectives(reach, {ranks.begin(), ranks.begin() + members}, channels);
      if (members == most) break;
    }
  }
  if (heads.size() > 1 && heads.size() < all.size()) add_collectives(Reach::between_nodes, all, channels);
  transport.open(channels);
  told_at_s_.assign(static_cast<std::size_t>(transport.ranks()), monotonic_s());
}

LinkRanks::~LinkRanks() = default;

double LinkRanks::perform(const Trial& trial, std::size_t bytes) {
  const auto hold = [&](std::size_t most) {
    if (buffer_.size() < most) buffer_.resize(most, std::byte{});
  };
  hold(bytes);
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
      collective_table(trial.kind, trial.plan, static_cast<std::int64_t>(bytes / kElementBytes), {},
                       static_cast<std::int64_t>(nccl::kPieceBytes) / static_cast<int>(kElementBytes));
  hold(static_cast<std::size_t>(wiring.table.elements) * kElementBytes);
  const auto run = [&] {
    run_table(transport_, wiring, transport_.rank(), reinterpret_cast<float*>(buffer_.data()));
  };
  run();
  const int times = in_a_row(bytes);
  const Course course = course_of(trial.kind);
  if (course == Course::from_root || course == Course::to_root)
    return time_chain(trial.ranks.back(), course == Course::from_root, times, run);
  const double begin_s = monotonic_s();
  for (int i = 0; i < times; ++i) run();
  return (monotonic_s() - begin_s) / times;
}

// One after the other, as nobody waits for the far end of a chain by himself: a word from the last member
// ends each broadcast, and a word to it begins each reduction. What such a word takes is taken off.
double LinkRanks::time_chain(int last, bool from_root, int times, const std::function<void()>& run) {
  const bool first = transport_.rank() == 0, far = transport_.rank() == last;
  const int other = first ? last : 0;
  std::int64_t word = 0;
  const auto tell = [&] { move(transport_, Parcel::Kind::send, other, kControlChannel, &word, sizeof word); };
  const auto hear = [&] {
    move(transport_, Parcel::Kind::receive, other, kControlChannel, &word, sizeof word);
  };
  constexpr int kWords = 4;
  double word_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kWords && (first || far); ++i) {
    const double begin_s = monotonic_s();
    first ? tell() : hear();
    first ? hear() : tell();
    word_s = std::min(word_s, (monotonic_s() - begin_s) / 2);
  }
  const double begin_s = monotonic_s();
  for (int i = 0; i < times; ++i) {
    if (!from_root && first) tell();
    if (!from_root && far) hear();
    run();
    if (from_root && first) hear();
    if (from_root && far) tell();
  }
  const double seconds = (monotonic_s() - begin_s) / times;
  return std::max(seconds - word_s, seconds / 4);
}

void LinkRanks::add_messages(Reach reach, int peer, std::vector<Channel>& channels) {
  Trial& trial = trials_.emplace_back();
  trial.reach = reach;
  trial.ranks = {0, peer};
  trial.first_channel = static_cast<int>(channels.size());
  channels.push_back({0, peer, trial.first_channel});
  channels.push_back({peer, 0, trial.first_channel + 1});
}

void LinkRanks::add_collectives(Reach reach, const std::vector<int>& ranks, std::vector<Channel>& channels) {
  for (std::size_t kind = 0; kind < kCollectiveNames.size(); ++kind) {
    Trial& trial = trials_.emplace_back();
    trial.reach = reach;
    trial.collective = true;
    trial.kind = static_cast<CollectiveKind>(kind);
    trial.ranks = ranks;
    trial.plan = ring_of(static_cast<int>(ranks.size()));
    trial.first_channel = static_cast<int>(channels.size());
    for (const MessageTable::Connection& c : collective_connections(trial.kind, trial.plan))
      channels.push_back({ranks[c.from], ranks[c.to], static_cast<int>(channels.size())});
  }
}

void LinkRanks::order(int trial, double bytes) {
  const auto tell = [&](int rank, Order order) {
    move(transport_, Parcel::Kind::send, rank, kControlChannel, &order, sizeof order);
    told_at_s_[rank] = monotonic_s();
  };
  if (trial < 0) {
    for (int rank = 1; rank < transport_.ranks(); ++rank) tell(rank, {kOver, 0});
    return;
  }
  const std::vector<int>& ranks = trials_[trial].ranks;
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank)
    tell(*rank, {trial, static_cast<std::int64_t>(bytes)});
  for (int rank = 1; rank < transport_.ranks(); ++rank)
    if (monotonic_s() - told_at_s_[rank] > kTellEvery_s) tell(rank, {kGoesOn, 0});
  // Answered before it begins, so that everybody is there.
  for (auto rank = ranks.begin() + 1; rank != ranks.end(); ++rank) {
    Order answer;
    move(transport_, Parcel::Kind::receive, *rank, kControlChannel, &answer, sizeof answer);
  }
}

std::vector<LinkTrial> LinkRanks::trials() {
  std::vector<LinkTrial> all;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    const Trial& trial = trials_[i];
    LinkTrial& told = all.emplace_back();
    told.reach = trial.reach;
    told.ranks = trial.collective ? static_cast<int>(trial.ranks.size()) : 0;
    told.kind = trial.kind;
    told.members = trial.ranks;
    if (trial.collective) told.most_message_bytes = most_message_bytes(trial.kind, told.ranks);
    told.time_s = [this, i](double bytes) {
      const double whole = std::max<double>(kElementBytes, std::round(bytes / 4) * 4);
      order(static_cast<int>(i), whole);
      return perform(trials_[i], static_cast<std::size_t>(whole));
    };
  }
  return all;
}

void LinkRanks::follow() {
  while (true) {
    Order order;
    move(transport_, Parcel::Kind::receive, 0, kControlChannel, &order, sizeof order);
    if (order.trial == kOver) return;
    if (order.trial == kGoesOn) continue;
    move(transport_, Parcel::Kind::send, 0, kControlChannel, &order, sizeof order);
    perform(trials_[static_cast<std::size_t>(order.trial)], static_cast<std::size_t>(order.bytes));
  }
}

void LinkRanks::end() {
  order(-1, 0);
}

}  // namespace rehearse
