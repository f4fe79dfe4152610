#include "simulator/report/checkpoint_sentence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "simulator/report/format.hpp"

namespace rehearse {
namespace {

constexpr double kWorthAsking = 0.01;  // share of the time

// Returns what limits the writing of the last tier.
std::string limit_of(const Scenario& s, const CheckpointBytes& bytes) {
  const Checkpoint& checkpoint = s.checkpoint;
  if (checkpoint.tiers.back() == CheckpointTier::peer) return "the network cards of the nodes";
  const bool local = checkpoint.tiers.back() == CheckpointTier::local;
  const Storage& storage = s.cluster->storage(local ? checkpoint.drives : checkpoint.storage);
  const bool of_node = storage.kind == Storage::Kind::local;
  const double whole_s = (of_node ? bytes.most_of_node : bytes.total) / storage.write_bandwidth;
  const double writer_s = checkpoint.writer_bytes_per_s > 0 ? bytes.most / checkpoint.writer_bytes_per_s : 0;
  const double client_s = storage.client_bandwidth > 0 ? bytes.most_of_node / storage.client_bandwidth : 0;
  if (writer_s >= std::max(whole_s, client_s))
    return "each writer at " + in_gb_per_s(checkpoint.writer_bytes_per_s);
  if (client_s > whole_s) return "each node at " + in_gb_per_s(storage.client_bandwidth);
  return fmt::format("the {} at {}", of_node ? "drives of each node" : "storage",
                     in_gb_per_s(storage.write_bandwidth));
}

}  // namespace

std::string checkpoint_sentence(const Result& result) {
  const Scenario& s = result.scenario;
  const std::optional<CheckpointCost>& cost = result.metrics.checkpoint;
  if (!cost) return "";
  const Checkpoint& checkpoint = s.checkpoint;
  const CheckpointBytes& bytes = result.plan.checkpoint;
  const TimeScale stall(cost->stall_s);
  std::string text = fmt::format(
      "Checkpoints: {} GB {} ({}), written in {}{}, limited by {}; each delays training by {}, {} of "
      "the time",
      with_digits(bytes.total / 1e9, 3),
      checkpoint.every == 1 ? "after each step" : "every " + counted(checkpoint.every, "step"),
      duration(cost->interval_s), duration(cost->written_s),
      checkpoint.storage_title.empty() ? "" : " to " + checkpoint.storage_title, limit_of(s, bytes),
      stall(cost->stall_s), in_percent(cost->stall_s / cost->interval_s));
  if (cost->behind && checkpoint.mode == CheckpointMode::asynchronous)
    text += "; the next one waits until it has been written";
  return text + ".";
}

WayOut cheaper_checkpoints(const Result& result) {
  const Checkpoint& checkpoint = result.scenario.checkpoint;
  const std::optional<CheckpointCost>& cost = result.metrics.checkpoint;
  if (!cost) return {};
  if (checkpoint.mode == CheckpointMode::blocking)
    return {"written asynchronously, it stops training only while it is copied to host memory",
            {"checkpoint.mode=async"}};
  if (checkpoint.writers != CheckpointWriters::all)
    return {"all data-parallel ranks could write a part each", {"checkpoint.writers=all"}};
  const double step_s = cost->interval_s / checkpoint.every,
               enough = std::ceil(cost->stall_s / (kWorthAsking * step_s));
  if (enough > checkpoint.every)
    return {fmt::format("a checkpoint after every {:.0f} steps would cost about {}", enough,
                        in_percent(kWorthAsking)),
            {fmt::format("checkpoint.every={:.0f}", enough)}};
  return {};
}

}  // namespace rehearse
