// What each rank did in a step, and which of them kept the others waiting.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "gui/models/run.hpp"

namespace rehearse::gui {

// The parts of a rank's bar, in its order. Holistic Trace Analysis (HTA, docs.pytorch.org, "Temporal
// Breakdown") has three: computing, non-computing (communication and memory that no computing hides) and
// idle; here they are told apart further.
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

// A process of the timeline that stands for a device, or for several that behave alike.
struct RankTime {
  int process = 0;
  int members = 1;
  std::string name;                          // "stage 3, data 0-63"
  std::array<double, kRankParts> seconds{};  // of a step, each instant once: together they are the step
  // Of its transfers, from when all sides were ready, each instant once; hidden: while it computes. HTA's
  // "communication computation overlap" is the latter over the former.
  double communication_s = 0, hidden_s = 0;
  // How long others waited because it arrived last at collectives, and at which one most of it. HTA
  // ("straggler analysis") names the ranks whose communication kernels start late.
  double late_s = 0;
  std::string late_at;

  double of(RankPart part) const { return seconds[static_cast<std::size_t>(part)]; }
  double step_s() const;
  double computing_s() const;
  double overlap() const { return communication_s > 0 ? hidden_s / communication_s : 0; }
};

struct RankTimes {
  std::vector<RankTime> ranks;  // in the order of the timeline
  std::string stragglers;       // a sentence: who is late, by how much, where
};
// Of the step that is told of (RunFigures::step), of a profile a mean over the steps that it marks. Servers
// and workers are each compared among themselves. Slow for large traces; returns early once `cancelled`.
RankTimes rank_times(const Run& run, const std::atomic<bool>& cancelled);

}  // namespace rehearse::gui
