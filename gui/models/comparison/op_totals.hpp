// Sums how often each kind of op runs and how long it takes in a time range of a run.
#pragma once

#include <atomic>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/runs/run.hpp"
#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

// Ops of the same kind whose names differ only in numbers.
struct OpTotals {
  std::string name;  // "backward", "send forward"
  Kind kind = Kind::compute;
  double ranks = 0;    // ranks whose roles (workers, servers) do such work; means are over them
  double count = 0;    // over all ranks; a folded process counts once per member
  double seconds = 0;  // over all ranks, only the time within the range
  double whole_s = 0;  // total of their full durations
  Time shortest = std::numeric_limits<Time>::max(), longest = 0;
  double bytes = 0, bytes_s = 0;  // bytes of the ops that record them, and the time of those ops
  double flops = 0, flops_s = 0;

  // Mean over those ranks. The Table and Compare views use this definition, and so does seconds_by_op()
  // (simulator/trace/op_seconds.hpp) for Rehearse's traces.
  double mean(double of_all) const { return ranks > 0 ? of_all / ranks : 0; }
};

struct OpTotalsOfRange {
  std::vector<OpTotals> ops;  // longest first
  double ranks = 0;           // that have any spans
  double seconds = 0;         // length of the range
};

// Counts the spans of tracks, except annotations and waiting (which belongs to what was waited for). Returns
// partial results once `cancelled` is set.
OpTotalsOfRange op_totals(const Timeline& timeline, TimeRange range,
                          const std::atomic<bool>* cancelled = nullptr);

// Removes numbers from the name: "backward 3, layers 5-12" and "backward 0" become "backward", "layer 4 gemm"
// becomes "layer gemm". Numbers inside words stay.
std::string kind_of_name(std::string_view name);

// Makes the table with count, total and bytes of a mean rank (OpTotals::mean).
TableData rows_of(const OpTotalsOfRange& totals);

}  // namespace rehearse::gui
