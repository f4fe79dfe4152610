// Finds ranks that behave alike, such as data-parallel replicas, so that one row can show them all.
#pragma once

#include "gui/models/timeline.hpp"

namespace rehearse::gui {

// Whether the ranks are stages of a pipeline.
bool is_pipeline(const Timeline& timeline);

// Fills Process::kind: ranks of one kind have the same stage, role and tracks, and summaries that spend time
// alike. Of a pipeline two suffice; else it takes many.
void find_kinds(Timeline& timeline);

// What names have in common, with the numbers in which they differ: "stage 3, data 0-15", "rank 0, 8, 16".
std::string common_name(const std::vector<std::string_view>& names);

}  // namespace rehearse::gui
