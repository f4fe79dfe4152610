// Shows plans as rows of a table and filters them.
#pragma once

#include <QString>
#include <vector>

#include "gui/models/tables/plan_file.hpp"
#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

TableData rows_of(const PlanFile& file);

struct PlanFilter {
  // Words that must occur in some cell of a row, and comparisons of columns: "interleaved tensor>=4
  // memory<70". A comparison names a column by the beginning of its title without spaces; its number is in
  // the column's unit.
  QString text;
  bool fits = false, simulated = false, pareto = false;  // only plans that do
};
// Returns, by plan, whether it passes the filter. If a comparison's name begins no column title, the
// comparison is searched for as a word.
std::vector<bool> matching(const PlanFile& file, const TableData& rows, const PlanFilter& filter);

}  // namespace rehearse::gui
