// Tells what fills the fullest device at its peak: the largest tensors, and when each is born and freed.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>

#include "simulator/report/report.hpp"

namespace rehearse {

void write_peak_tensors(const Result& result, std::ostream& out);
// Returns `memory_bytes.peak`: "What the figures mean" of simulator/commands/README.md lists its keys. Null
// if no memory is known.
nlohmann::ordered_json peak_tensors_json(const Result& result);

}  // namespace rehearse
