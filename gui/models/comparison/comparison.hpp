// Compares runs side by side with the first run as the base: what differs, by how much, and why.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/models/comparison/op_totals.hpp"
#include "gui/models/runs/run.hpp"
#include "gui/models/tables/value_table.hpp"

namespace rehearse::gui {

using Runs = std::vector<std::shared_ptr<const Run>>;

// Returns distinct names: "gpt3-175b", "gpt3-175b (2)".
std::vector<std::string> names_of(const Runs& runs);

// Whether the steps of the runs train different numbers of samples; their times are then compared per sample.
double samples_per_step(const Run& run);  // 0: not known
bool per_sample(const Runs& runs);

// A part of the breakdown, with its seconds in each run.
struct ComparedPart {
  std::string name;
  Kind kind = Kind::compute;
  std::vector<double> seconds;
};
// Merges exposed communication into one part if any run does not know what it waited for.
std::vector<ComparedPart> compared_breakdowns(const Runs& runs);

// Returns e.g. "B is 1.66 x slower: +117.2 ms exposed gradient sync, -9.2 ms compute.". For two judged runs
// this is the sentence of the simulator's own comparison, which also gives the cause; otherwise it is derived
// from their breakdowns. Empty if a step time is not known.
std::string difference_sentence(const Run& base, const Run& other, const std::string& base_name,
                                const std::string& name);

// Returns step time, rates, MFU, breakdown and memory of each run, and the differences from the base.
TableData compared_figures(const Runs& runs, const std::vector<std::string>& names);

// One kind of op: count and time per step on a mean rank, in each run.
struct ComparedOp {
  struct Amount {
    double count = 0, seconds = 0;
  };
  std::string name, kind;
  std::vector<Amount> amounts;
};
enum class Change { equal, added, removed, increased, decreased };
inline constexpr std::array<std::string_view, 5> kChangeNames = {"equal", "added", "removed", "increased",
                                                                 "decreased"};
// Compares with the base; a change of at most 1 % of the base's time counts as equal.
Change change_of(const ComparedOp::Amount& base, const ComparedOp::Amount& other);

// If all runs are judged, counts ops as the simulator's tools do (simulator/trace/op_seconds.hpp), so that
// predicted and measured ops match. Otherwise counts the spans of each timeline. Sorts by the largest
// difference. Can take long for large traces.
std::vector<ComparedOp> compared_ops(const Runs& runs, const std::atomic<bool>* cancelled = nullptr);
TableData rows_of(const std::vector<ComparedOp>& ops, const std::vector<std::string>& names);

}  // namespace rehearse::gui
