// What ranks that stand together do: at each instant that which most of them do.
#pragma once

#include <atomic>
#include <memory>

#include "gui/models/mipmap.hpp"

namespace rehearse::gui {

// A timeline of one row. Its spans are made up; their names and micro-batches are those of the ranks' own
// summaries.
struct GroupSummary {
  Timeline timeline;
  RowMipmap mipmap;
};

// Every rank counts as many as it stands for. Null if cancelled.
std::shared_ptr<const GroupSummary> group_summary(const Timeline& timeline, const std::vector<int>& processes,
                                                  const std::atomic<bool>& cancelled);

// How many of the ranks do what at `time`, the most first; those that do nothing are left out.
struct Doing {
  std::string name;
  int ranks = 0;
};
std::vector<Doing> doing_at(const Timeline& timeline, const std::vector<int>& processes, Time time);

}  // namespace rehearse::gui
