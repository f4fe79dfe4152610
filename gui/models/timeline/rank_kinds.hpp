// Finds ranks that behave almost identically, such as data-parallel replicas, so that one row can show them
// all.
#pragma once

#include "gui/models/timeline/timeline.hpp"

namespace rehearse::gui {

// Whether the ranks are stages of a pipeline.
bool is_pipeline(const Timeline& timeline);

// Fills in Process::kind. Ranks of one kind have the same stage, role and tracks, and their summaries spend
// time similarly. In a pipeline two ranks are enough for a kind; otherwise it takes many (kManyAlike).
void find_kinds(Timeline& timeline);

// Merges names that differ only in a number: "stage 3, data 0-15", "rank 0, 8, 16".
std::string common_name(const std::vector<std::string_view>& names);

}  // namespace rehearse::gui
