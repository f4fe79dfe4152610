// Explains one row of a table of step times: its predicted breakdown, and the step time without each term.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/commands/validate/table.hpp"
#include "simulator/terminal/output_format.hpp"

namespace rehearse {

// Writes the explanation of row `id`. Throws InputError, which suggests the nearest id, if the table has no
// such row.
void explain_row(const MeasurementTable& table, const std::string& id,
                 const std::vector<std::string>& overrides, Format format, std::ostream& out);

}  // namespace rehearse
