// Summarizes a group of ranks: at each instant, shows what most of them do.
#pragma once

#include <atomic>
#include <memory>

#include "gui/models/timeline/mipmap.hpp"

namespace rehearse::gui {

// A timeline with a single row. Its spans are synthetic, with names and micro-batches from the ranks' own
// summaries.
struct GroupSummary {
  Timeline timeline;
  RowMipmap mipmap;
};

// Weights each process by the number of ranks it represents. Null if cancelled.
std::shared_ptr<const GroupSummary> group_summary(const Timeline& timeline, const std::vector<int>& processes,
                                                  const std::atomic<bool>& cancelled);

// How many ranks do what at `time`, the most frequent first; leaves out idle ranks.
struct Doing {
  std::string name;
  int ranks = 0;
};
std::vector<Doing> doing_at(const Timeline& timeline, const std::vector<int>& processes, Time time);

}  // namespace rehearse::gui
