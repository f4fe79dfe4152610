// A CSV file of results: what a sweep or a validation wrote, told apart by its header.
#pragma once

#include <variant>

#include "gui/models/accuracy_table.hpp"
#include "gui/models/sweep_table.hpp"
#include "gui/models/trace_file.hpp"

namespace rehearse::gui {

struct ReadSweep {
  SweepTable sweep;
  TableData rows;  // of its points
};
using ResultFile = std::variant<ReadSweep, AccuracyTable>;

// InputError: no file, or of neither. Cancelled.
ResultFile read_results(const std::string& path, Progress& progress);

}  // namespace rehearse::gui
