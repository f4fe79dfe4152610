// Parses tables of measured collectives: CSV files, and the output of nccl-tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/validate/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// Returns whether the text is a CSV file with the column measured_time_us or a table of nccl-tests, judging
// by the header.
bool is_collective_table(const std::string& text);

// Parses a table of collectives. CSV columns: id, source, note, group, collective, cluster.preset,
// cluster.nodes, devices, bytes, algorithm, software, issue_us, measured_time_us; all but id, source, bytes
// and measured_time_us may be missing or empty. From nccl-tests' output it reads the sizes, the out-of-place
// times, the ranks that are listed and the ratio of the two bandwidths, which depends on the number of ranks.
// The collective is the one that the output names, otherwise an all-reduce if there is a reduction. A last
// line that is cut short is left out. Throws InputError for anything else.
MeasurementTable parse_collective_table(const std::string& text, const std::string& path);

struct PredictedCollective {
  double time_s = 0;
  int devices = 0;
  std::string
      note;  // how many devices a printed table was taken for, and why; empty: the row or --set says so
  std::optional<Uncertainty> uncertainty;  // nullopt: not requested
};

// Predicts each row. Calls follow each other at intervals of the collective's time or of the time that the
// host takes to issue it (issue_us), whichever is longer. `overrides` ("key=value") set or replace, for all
// rows, cluster.preset, cluster.file, cluster.nodes, cluster.devices_per_node, devices, collective,
// algorithm and software. Throws InputError for a row whose cluster is unknown, or that does not fit its
// cluster.
std::vector<PredictedCollective> predict_collectives(const MeasurementTable& table,
                                                     const std::vector<std::string>& overrides,
                                                     bool with_uncertainty = false);

}  // namespace rehearse
