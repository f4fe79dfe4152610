// Tables of measured collectives: CSV files, and what nccl-tests prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/commands/table.hpp"
#include "simulator/report/uncertainty.hpp"

namespace rehearse {

// A CSV file with the column measured_time_us, or nccl-tests' table, by its header.
bool is_collective_table(const std::string& text);

// CSV columns: id, source, note, group, collective, cluster.preset, cluster.nodes, devices, bytes, algorithm,
// issue_us, measured_time_us; all but id, source, bytes and measured_time_us may be left out or empty. Of
// nccl-tests' output the sizes and the times out of place are read, and how many ranks there were, if it
// lists them; its `collective` is that which it names, else an all-reduce where it sums. InputError for
// anything else.
MeasurementTable parse_collective_table(const std::string& text, const std::string& path);

struct PredictedCollective {
  double time_s = 0;
  std::optional<Uncertainty> uncertainty;  // none: not asked for
};

// What is predicted for each row: calls follow each other as fast as the collective takes, or as the host
// issues it (issue_us), whichever is longer. `overrides` ("key=value") set or replace, for all rows,
// cluster.preset, cluster.nodes, devices, collective and algorithm. InputError for a row whose cluster is not
// known, or that does not fit its cluster.
std::vector<PredictedCollective> predict_collectives(const MeasurementTable& table,
                                                     const std::vector<std::string>& overrides,
                                                     bool with_uncertainty = false);

}  // namespace rehearse
