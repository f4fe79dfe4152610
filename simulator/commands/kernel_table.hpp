// A table of kernels that were measured: each row names a kernel, its sizes, a device and what it took.
#pragma once

#include <string>
#include <vector>

#include "simulator/commands/kernel_question.hpp"
#include "simulator/commands/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

struct KernelTable {
  MeasurementTable table;  // of each row the measured seconds, as those of a step; it has no scenario
  std::vector<KernelQuestion> questions;  // by row
  std::vector<std::string> devices;       // by row: presets or files
};

// Whether the text's first line names the columns of a table of kernels: kernel and measured_time_us.
bool is_kernel_table(const std::string& text);

// Columns: id, source, kernel, device, precision, measured_time_us, the sizes of the kernels (m, n, k, batch
// of gemm, and so on: kernel_kinds()), and, if there are any, note, group, pass, attention (unfused, flash-1,
// ...) and causal (true, false); an empty cell leaves a column out. Throws InputError, naming the line, for a
// file that is not such a table.
KernelTable parse_kernel_table(const std::string& text, const std::string& path);

// Seconds that each row's kernel is predicted to take. Throws InputError for devices that there are not.
std::vector<double> predicted_times_s(const KernelTable& table);
// Their intervals (kernel_uncertainty.hpp).
std::vector<Uncertainty> kernel_uncertainties(const KernelTable& table);

}  // namespace rehearse
