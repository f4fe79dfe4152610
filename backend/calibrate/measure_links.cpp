#include "backend/calibrate/measure_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "models/base/text.hpp"
#include "simulator/costs/transfer.hpp"

namespace rehearse {
namespace {

constexpr double kSmallest = 64, kLargest = 64 * 1048576.0;

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

}  // namespace rehearse
