// What a trace of ours tells of itself.
#pragma once

#include "gui/models/run.hpp"

namespace rehearse::gui {

// Whether it was measured, and the scenario it can be predicted from again; from `otherData`.
void facts_of(const Timeline& timeline, Run& run);

}  // namespace rehearse::gui
