// Selects which rows an area counts, one group of rows at a time.
#pragma once

#include "gui/models/tracks/track_layout.hpp"

namespace rehearse::gui {

enum class Chosen : std::uint8_t { none, some, all };

// How many of `rows` (ascending) are in the area.
Chosen chosen_of(const Area& area, const std::vector<std::pair<int, int>>& rows);
// Removes `rows` from the area if it contains all of them, otherwise adds all.
Area toggled(Area area, const std::vector<std::pair<int, int>>& rows);

}  // namespace rehearse::gui
