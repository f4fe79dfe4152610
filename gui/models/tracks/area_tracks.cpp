#include "gui/models/tracks/area_tracks.hpp"

#include <algorithm>
#include <iterator>

namespace rehearse::gui {

Chosen chosen_of(const Area& area, const std::vector<std::pair<int, int>>& rows) {
  std::size_t inside = 0;
  auto at = area.rows.begin();
  for (const auto& row : rows) {
    at = std::lower_bound(at, area.rows.end(), row);
    if (at == area.rows.end()) break;
    inside += *at == row ? 1 : 0;
  }
  return inside == 0 ? Chosen::none : inside == rows.size() ? Chosen::all : Chosen::some;
}

Area toggled(Area area, const std::vector<std::pair<int, int>>& rows) {
  std::vector<std::pair<int, int>> now;
  if (chosen_of(area, rows) == Chosen::all)
    std::set_difference(area.rows.begin(), area.rows.end(), rows.begin(), rows.end(),
                        std::back_inserter(now));
  else
    std::set_union(area.rows.begin(), area.rows.end(), rows.begin(), rows.end(), std::back_inserter(now));
  area.rows = std::move(now);
  return area;
}

}  // namespace rehearse::gui
