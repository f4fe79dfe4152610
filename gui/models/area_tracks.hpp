// Which rows an area counts, chosen header by header.
#pragma once

#include "gui/models/track_layout.hpp"

namespace rehearse::gui {

enum class Chosen : std::uint8_t { none, some, all };

// Of `rows`, ascending, those that are in the area.
Chosen chosen_of(const Area& area, const std::vector<std::pair<int, int>>& rows);
// The area without them if all are in it, else with all of them.
Area toggled(Area area, const std::vector<std::pair<int, int>>& rows);

}  // namespace rehearse::gui
