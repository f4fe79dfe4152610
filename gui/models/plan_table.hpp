// Plans as rows of a table, and those of them that a filter leaves.
#pragma once

#include <QString>
#include <vector>

#include "gui/models/plan_file.hpp"
#include "gui/models/value_table.hpp"

namespace rehearse::gui {

TableData rows_of(const PlanFile& file);

struct PlanFilter {
  // Words that a row holds in any cell, and comparisons of columns: "interleaved tensor>=4 memory<70". A
  // comparison names a column by the beginning of its title without spaces, and means its unit.
  QString text;
  bool fits = false, simulated = false, pareto = false;  // only such
};
// Whether each plan passes the filter, by the plan's index. A comparison whose name begins no column's title
// is searched for as a word.
std::vector<bool> matching(const PlanFile& file, const TableData& rows, const PlanFilter& filter);

}  // namespace rehearse::gui
