#include "backend/calibrate/transport_links.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>

#include "backend/host/host_hardware.hpp"
#include "backend/runtime/control.hpp"
#include "backend/runtime/wiring.hpp"
#include "simulator/collectives/message_table.hpp"
#include "simulator/costs/nccl_constants.hpp"

namespace rehearse {
namespace {

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

// Returns how many collectives to run in a row, so that the time of ordering them is small.
int in_a_row(std::size_t bytes) {
  return bytes < 65536 ? 16 : bytes < 1048576 ? 4 : 1;
}

class TransportLinks : public LinkCarrier {
public:
  explicit TransportLinks(Transport& transport) : transport_(transport) {}
  std::string name() const override { return transport_.kind(); }
  double most_buffer_bytes() const override { return 256 * 1048576.0; }

  void open(const std::vector<LinkGroup>& groups) override {
    std::vector<Channel> channels;
    const auto connect = [&](int from, int to) {
      channels.push_back({from, to, static_cast<int>(channels.size())});
    };
    for (const LinkGroup& group : groups) {
      Way& way = ways_.emplace_back();
      way.group = group;
      way.first_channel = static_cast<int>(channels.size());
      if (!group.collective) {
        connect(0, group.ranks.back());
        connect(group.ranks.back(), 0);
        continue;
      }
      way.plan = ring_of(static_cast<int>(group.ranks.size()));
      for (const Connection& c : connections_of(course_of(group.kind), way.plan))
        connect(group.ranks[c.from], group.ranks[c.to]);
    }
    transport_.open(channels);
  }

  double time_s(std::size_t group, std::size_t bytes) override {
    const Way& way = ways_[group];
    hold(bytes);
    return way.group.collective ? collective_s(way, bytes) : message_s(way, bytes);
  }

private:
  struct Way {
    LinkGroup group;
    int first_channel = 0;
    CollectivePlan plan;
  };

  void hold(std::size_t bytes) {
    if (buffer_.size() < bytes) buffer_.resize(bytes, std::byte{});
  }

  double message_s(const Way& way, std::size_t bytes) {
    const int there = way.first_channel, back = there + 1, peer = way.group.ranks.back();
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

  double collective_s(const Way& way, std::size_t bytes) {
    CollectiveWiring wiring;
    wiring.ranks = way.group.ranks;
    wiring.first_channel = way.first_channel;
    constexpr Cut kCut = {0, static_cast<std::int64_t>(nccl::kPieceBytes / kElementBytes)};
    wiring.table =
        message_table(way.group.kind, way.plan, static_cast<std::int64_t>(bytes / kElementBytes), kCut);
    hold(static_cast<std::size_t>(wiring.table.elements) * kElementBytes);
    const auto run = [&] {
      run_table(transport_, wiring, transport_.rank(), {buffer_.data(), buffer_.size()});
    };
    run();
    const int times = in_a_row(bytes);
    const Course course = course_of(way.group.kind);
    if (course == Course::from_root || course == Course::to_root) {
      const std::vector<int> chain = chain_of(way.plan.lanes.front(), course);
      const int far = course == Course::from_root ? chain.back() : chain.front();
      return chain_s(way.group.ranks[static_cast<std::size_t>(far)], course == Course::from_root, times, run);
    }
    const double begin_s = monotonic_s();
    for (int i = 0; i < times; ++i) run();
    return (monotonic_s() - begin_s) / times;
  }

  // Runs collectives along a chain one at a time, since no rank waits for the far end of a chain by itself: a
  // signal from the member at the far end ends each broadcast, and a signal to it begins each reduction.
  // Subtracts the time of the signal.
  double chain_s(int farthest, bool from_root, int times, const std::function<void()>& run) {
    const bool first = transport_.rank() == 0, far = transport_.rank() == farthest;
    const int other = first ? farthest : 0;
    std::int64_t word = 0;
    const auto tell = [&] {
      move(transport_, Parcel::Kind::send, other, kControlChannel, &word, sizeof word);
    };
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

  Transport& transport_;
  std::vector<Way> ways_;  // by group
  std::vector<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<LinkCarrier> transport_links(Transport& transport) {
  return std::make_unique<TransportLinks>(transport);
}

}  // namespace rehearse
