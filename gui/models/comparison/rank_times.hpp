// Computes what each rank does in a step, and which ranks keep the others waiting.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "gui/models/runs/run.hpp"

namespace rehearse::gui {

// The parts of a rank's bar, in their order. Holistic Trace Analysis (HTA, docs.pytorch.org, "Temporal
// Breakdown") has three: computing, non-computing (communication and memory that no computing hides) and
// idle; here they are divided further.
enum class RankPart {
  forward,
  backward,
  optimizer,
  compute,  // of no known pass
  communication,
  copy,
  data,
  checkpoint,
  waiting,
  bubble,
  host,
  idle
};
inline constexpr std::size_t kRankParts = 12;
struct RankPartLook {
  std::string_view name, what;
  Kind kind;
  Pass pass;
};
const RankPartLook& look_of(RankPart part);

// A process of the timeline that represents one device, or several that behave identically.
struct RankTime {
  int process = 0;
  int members = 1;
  std::string name;  // "stage 3, data 0-63"
  // Per step; each instant counts once, so that the parts add up to the step.
  std::array<double, kRankParts> seconds{};
  // Time of its transfers, counted from when all sides were ready, overlapping ones once; hidden: the part
  // during which it computes. HTA's "communication computation overlap" is hidden over total.
  double communication_s = 0, hidden_s = 0;
  // How long others waited because this rank arrived last at collectives, and the kind of op that lost most
  // of that time. HTA ("straggler analysis") names the ranks whose communication kernels start late.
  double late_s = 0;
  std::string late_at;

  double of(RankPart part) const { return seconds[static_cast<std::size_t>(part)]; }
  double step_s() const;
  double computing_s() const;
  double overlap() const { return communication_s > 0 ? hidden_s / communication_s : 0; }
};

struct RankTimes {
  std::vector<RankTime> ranks;  // in the order of the timeline
  std::string stragglers;       // a sentence: who is late, by how much and where
};
// Evaluates the step that the figures describe (RunFigures::step), or for a profile the mean of the steps it
// marks. Compares servers and workers only with their own role. Slow for large traces; returns partial
// results once `cancelled` is set.
RankTimes rank_times(const Run& run, const std::atomic<bool>& cancelled);

}  // namespace rehearse::gui
