#include "backend/calibrate/measure_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "models/base/text.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {
namespace {

constexpr double kSmallest = 64, kLargest = 64 * 1048576.0;
constexpr int kOrders = kControlChannel + 1000, kRoundTrips = kOrders + 1;

void move(Transport& transport, Parcel::Kind kind, int peer, int channel, void* data, std::size_t bytes) {
  Parcel parcel;
  parcel.kind = kind;
  parcel.peer = peer;
  parcel.channel = channel;
  parcel.data = static_cast<std::byte*>(data);
  parcel.bytes = bytes;
  while (!parcel.done) transport.progress({&parcel});
}

std::vector<std::byte>& buffer_of(std::size_t bytes) {
  static thread_local std::vector<std::byte> buffer;
  if (buffer.size() < bytes) buffer.resize(bytes, std::byte{1});
  return buffer;
}

// Steps of a collective, and the bytes of one of its messages for each of its own.
struct Steps {
  double count = 1, message_share = 1;
};
Steps steps_of(const LinkTrial& trial) {
  if (trial.ranks == 0) return {};
  if (course_of(trial.kind) != Course::ring && course_of(trial.kind) != Course::pairs)
    throw std::invalid_argument("chains have no steps of equal messages");
  TransferShape shape;
  shape.ranks = trial.ranks;
  const TransferCost cost = ring_cost(trial.kind, 1, shape, Protocol::ideal);
  return {static_cast<double>(cost.steps), cost.bytes_per_edge / cost.steps};
}

}  // namespace

MeasuredLink measure_link(const LinkTrial& trial, double most_s, const Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto left_s = [&] { return most_s - std::chrono::duration<double>(Clock::now() - begin).count(); };
  const Steps steps = steps_of(trial);
  std::vector<double> sizes;  // of messages
  for (double bytes = kSmallest; bytes < kLargest * 1.01; bytes *= std::sqrt(2.0))
    sizes.push_back(std::round(bytes / 4) * 4);
  MeasuredLink link;
  link.curve.reach = trial.reach;
  link.curve.ranks = trial.ranks;
  link.curve.kind = trial.kind;
  double slowest_s = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double share_s = std::max(0.0, left_s() / static_cast<double>(sizes.size() - i));
    // Larger messages take longer; warming up and three samples.
    if (link.samples.size() > 8 && 4 * std::sqrt(2.0) * slowest_s > 2 * share_s) break;
    const double bytes = sizes[i] / steps.message_share;
    progress(
        fmt::format("{}, {}",
                    trial.ranks == 0
                        ? std::string("messages")
                        : fmt::format("{} of {} ranks",
                                      kCollectiveNames[static_cast<std::size_t>(trial.kind)], trial.ranks),
                    human_bytes(bytes)),
        1 - std::max(0.0, left_s() / most_s));
    Repeats repeats;
    repeats.most_s = share_s;
    repeats.fewest = 11;
    Sample s = sample([&] { return trial.time_s(bytes); }, repeats);
    slowest_s = std::max(slowest_s, s.median_s);
    for (double* time : {&s.median_s, &s.low_s, &s.high_s}) *time /= steps.count;
    link.samples.push_back({sizes[i], s});
  }
  link.curve.ranges = fit_ranges(link.samples);
  return link;
}

double round_trip_s(Transport& transport, int peer, double bytes) {
  const auto size = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes)));
  std::vector<std::byte>& buffer = buffer_of(size);
  std::uint64_t order = size, ready = 0;
  move(transport, Parcel::Kind::send, peer, kOrders, &order, sizeof order);
  move(transport, Parcel::Kind::receive, peer, kOrders, &ready, sizeof ready);
  const auto begin = std::chrono::steady_clock::now();
  move(transport, Parcel::Kind::send, peer, kRoundTrips, buffer.data(), size);
  move(transport, Parcel::Kind::receive, peer, kRoundTrips, buffer.data(), size);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2;
}

void answer_round_trips(Transport& transport, int peer) {
  while (true) {
    std::uint64_t order = 0;
    move(transport, Parcel::Kind::receive, peer, kOrders, &order, sizeof order);
    if (order == 0) return;
    std::vector<std::byte>& buffer = buffer_of(order);
    move(transport, Parcel::Kind::send, peer, kOrders, &order, sizeof order);
    move(transport, Parcel::Kind::receive, peer, kRoundTrips, buffer.data(), order);
    move(transport, Parcel::Kind::send, peer, kRoundTrips, buffer.data(), order);
  }
}

void end_round_trips(Transport& transport, int peer) {
  std::uint64_t end = 0;
  move(transport, Parcel::Kind::send, peer, kOrders, &end, sizeof end);
}

}  // namespace rehearse
