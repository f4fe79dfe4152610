// Parses tables of measured kernels: each row names a kernel, its sizes, a device and the measured time.
#pragma once

#include <string>
#include <vector>

#include "simulator/commands/predicting/kernel_question.hpp"
#include "simulator/commands/validate/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

struct KernelTable {
  MeasurementTable table;  // measured seconds are stored as those of a step; there are no scenarios
  std::vector<KernelQuestion> questions;  // by row
  std::vector<std::string> devices;       // by row: presets or files
};

// Returns whether the text's first line names the columns kernel and measured_time_us of a table of kernels.
bool is_kernel_table(const std::string& text);

// Parses a table of kernels. Columns: id, source, kernel, device, precision, measured_time_us, the sizes of
// the kernels (m, n, k, batch of gemm, and so on: kernel_kinds()), and optionally note, group, pass,
// attention (unfused, flash-1, ...) and causal (true, false); an empty cell counts as a missing column.
// Throws InputError, which names the line, for a file that is not such a table.
KernelTable parse_kernel_table(const std::string& text, const std::string& path);

// Returns the predicted seconds of each row's kernel. Throws InputError for unknown devices.
std::vector<double> predicted_times_s(const KernelTable& kernels);
// Returns the intervals of the predictions (kernel_uncertainty.hpp).
std::vector<Uncertainty> kernel_uncertainties(const KernelTable& kernels);

}  // namespace rehearse
