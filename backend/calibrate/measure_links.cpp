#include "backend/calibrate/measure_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "models/text/text.hpp"
#include "simulator/costs/nccl_constants.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {
namespace {

constexpr double kSmallest = 64, kLargest = 64 * 1048576.0;
// Sizes up to here are measured in any case, because shorter messages do not predict the times of longer
// ones.
constexpr double kAtLeast = 65536;
constexpr double kPieceBytes = static_cast<double>(nccl::kPieceBytes);

// A size at which a trial is measured.
struct Probe {
  double message_bytes = 0, bytes = 0;  // a step's message; all, as Collective::bytes
  double steps = 1;                     // in sequence
};

// Splits the buffers of chains as ring_cost() does: into the fewest equal pieces of at most 512 KiB.
std::vector<Probe> probes_of_chain(int ranks) {
  std::vector<Probe> probes;
  for (double bytes = kSmallest; bytes < kPieceBytes / 2 * 1.01; bytes *= std::sqrt(2.0)) {
    const double whole = std::round(bytes / 4) * 4;
    probes.push_back({whole, whole, ranks - 1.0});
  }
  // Each number of pieces has a different size of pieces. There are only a few, so that they do not become a
  // separate range whose sizes hardly differ.
  for (const double pieces : {2, 4, 8, 16, 32})
    probes.push_back({(1 - 0.5 / pieces) * kPieceBytes, (pieces - 0.5) * kPieceBytes, pieces + ranks - 2});
  return probes;
}

std::vector<Probe> probes_of(const LinkTrial& trial) {
  double steps = 1, message_share = 1;
  if (trial.ranks > 0) {
    const Course course = course_of(trial.kind);
    if (course == Course::from_root || course == Course::to_root) return probes_of_chain(trial.ranks);
    TransferShape shape;
    shape.ranks = trial.ranks;
    const TransferCost cost = ring_cost(trial.kind, 1, shape, Protocol::ideal);
    steps = cost.steps;
    message_share = cost.bytes_per_edge / cost.steps;
  }
  std::vector<Probe> probes;
  const double most = std::min(kLargest, trial.most_message_bytes);
  for (double bytes = kSmallest; bytes < most * 1.01; bytes *= std::sqrt(2.0)) {
    const double message = std::round(bytes / 4) * 4;
    probes.push_back({message, message / message_share, steps});
  }
  return probes;
}

}  // namespace

MeasuredLink measure_link(const LinkTrial& trial, double most_s, const Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto left_s = [&] { return most_s - std::chrono::duration<double>(Clock::now() - begin).count(); };
  const std::vector<Probe> probes = probes_of(trial);
  MeasuredLink link;
  link.curve.reach = trial.reach;
  link.curve.ranks = trial.ranks;
  link.curve.kind = trial.kind;
  double call_s = 0;  // of the previous size; may include several transfers
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const auto& [message_bytes, bytes, steps] = probes[i];
    const double share_s = std::max(0.0, left_s() / static_cast<double>(probes.size() - i));
    // Larger messages take longer; accounts for warming up and three samples.
    const double growth = i > 0 ? bytes / probes[i - 1].bytes : 1;
    if (message_bytes > kAtLeast && 4 * growth * call_s > 2 * share_s) break;
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
    std::vector<double> calls_s;
    const auto once = [&, whole = bytes] {
      const double before_s = left_s(), seconds = trial.time_s(whole);
      calls_s.push_back(before_s - left_s());
      return seconds;
    };
    Sample s = sample(once, repeats);
    call_s = quantile(calls_s, 0.5);
    link.whole.push_back({bytes, s});
    for (double* time : {&s.median_s, &s.low_s, &s.high_s}) *time /= steps;
    link.samples.push_back({message_bytes, s});
  }
  link.curve.ranges = fit_ranges(link.samples);
  return link;
}

}  // namespace rehearse
