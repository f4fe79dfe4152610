// How often each kind of op runs and how long it takes: of a stretch of time, summed over a run's spans.
#pragma once

#include <atomic>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gui/models/run.hpp"
#include "gui/models/value_table.hpp"

namespace rehearse::gui {

// Ops with the same name but for their numbers, and of the same kind.
struct OpTotals {
  std::string name;  // "backward", "send forward"
  Kind kind = Kind::compute;
  double ranks = 0;    // of the roles that do such work: workers, servers; means are over them
  double count = 0;    // of all ranks; of folded ones each
  double seconds = 0;  // of all ranks, as far as they lie in the stretch
  double whole_s = 0;  // their whole durations
  Time shortest = std::numeric_limits<Time>::max(), longest = 0;
  double bytes = 0, bytes_s = 0;  // of those that tell their bytes: these, and the time they took
  double flops = 0, flops_s = 0;

  // Of a mean rank among those: the definition of the Table and of Compare, and that of seconds_by_op
  // (simulator/trace/op_seconds.hpp) for traces of ours.
  double mean(double of_all) const { return ranks > 0 ? of_all / ranks : 0; }
};

struct OpTotalsOfRange {
  std::vector<OpTotals> ops;  // the longest first
  double ranks = 0;           // that have spans at all
  double seconds = 0;         // of the stretch
};

// Of spans of tracks, without waiting (it belongs to what was waited for) and annotations. Returns early,
// with what it has, once `cancelled`.
OpTotalsOfRange op_totals(const Timeline& timeline, TimeRange range,
                          const std::atomic<bool>* cancelled = nullptr);

// The name without its numbers: "backward 3, layers 5-12" and "backward 0" are "backward", "layer 4 gemm" is
// "layer gemm"; numbers inside of words stay.
std::string kind_of_name(std::string_view name);

// Count, total and bytes of a mean rank (OpTotals::mean).
TableData rows_of(const OpTotalsOfRange& totals);

}  // namespace rehearse::gui
