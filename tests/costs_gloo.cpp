// Tests the cost of Gloo's ring against its own loop (pytorch/gloo, gloo/allreduce.cc, ring()), run segment
// by segment.
#include <algorithm>
#include <cmath>
#include <vector>

#include "simulator/costs/gloo_constants.hpp"
#include "simulator/costs/transfer.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

// Returns the seconds of one phase of Gloo's loop. All ranks run in lockstep, so it simulates one of them:
// each segment that it sends represents one that it receives. Iteration i waits for segment i-2, sums it, and
// posts segment i.
double phase_s(int segments, double wire_s, double arrival_s, double sum_s) {
  std::vector<double> arrived(static_cast<std::size_t>(segments));
  double now = 0, wire_free = 0;
  for (int i = 0; i < segments + 2; ++i) {
    if (i >= 2) now = std::max(now, arrived[static_cast<std::size_t>(i - 2)]) + sum_s;
    if (i >= segments) continue;
    wire_free = std::max(now, wire_free) + wire_s;
    arrived[static_cast<std::size_t>(i)] = wire_free + arrival_s;
  }
  return now;
}

}  // namespace

TEST_CASE("an all-reduce over Gloo takes as long as its loop") {
  for (const int ranks : {2, 3, 4, 8})
    for (const double bytes : {64.0, 65536.0, 1048576.0, 4198400.0, 26214400.0, 134217728.0})
      for (const double bandwidth : {1.25e7, 1.25e8, 1.25e9, 1.25e10}) {
        CAPTURE(ranks, bytes, bandwidth);
        TransferShape shape;
        shape.ranks = shape.nodes = ranks;
        shape.ring_bandwidth = bandwidth;
        shape.hop_latency_s = 10e-6;
        const TransferCost cost = ring_cost(CollectiveKind::all_reduce, bytes, shape, Protocol::gloo);
        CHECK(cost.efficiency == tcp_efficiency(38));
        const double found = cost.startup_s + cost.steps * cost.step_latency_s +
                             cost.bytes_per_edge / (cost.efficiency * bandwidth);
        // At least two segments per rank, of at most 1 MiB each.
        const double of_rank = std::max(2.0, std::ceil(std::ceil(bytes / 1048576) / ranks));
        const double segment = bytes / of_rank / ranks, wire_s = segment / (cost.efficiency * bandwidth);
        const double arrival_s = 10e-6 + gloo::kSegmentLatencyS, sum_s = segment / gloo::kSummedBytesPerS;
        const int segments = static_cast<int>(of_rank) * (ranks - 1);
        const double expected = gloo::kCallS + phase_s(segments, wire_s, arrival_s, sum_s) +
                                phase_s(segments, wire_s, arrival_s, 0);
        // On links faster than 48 Gbit/s, sums take longer than the wire and limit the loop.
        CHECK(found == Approx(expected).epsilon(bandwidth < 6e9 ? 0.04 : 0.5));
      }
}

TEST_CASE("Gloo's other collectives and messages pay a segment's latency at every step") {
  TransferShape shape;
  shape.ranks = shape.nodes = 4;
  shape.ring_bandwidth = 1.25e8;
  shape.hop_latency_s = 10e-6;
  const double arrival_s = 10e-6 + gloo::kSegmentLatencyS;
  CHECK(message_cost(1e6, shape, Protocol::gloo).step_latency_s == Approx(arrival_s).epsilon(1e-12));
  for (const auto kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const TransferCost cost = ring_cost(kind, 1e6, shape, Protocol::gloo);
    const TransferCost tcp = ring_cost(kind, 1e6, shape, Protocol::tcp);
    CHECK(cost.step_latency_s == Approx(arrival_s).epsilon(1e-12));
    CHECK(cost.startup_s == gloo::kCallS);
    CHECK(cost.bytes_per_edge == tcp.bytes_per_edge);
    CHECK(cost.efficiency == tcp.efficiency);
  }
}
