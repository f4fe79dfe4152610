// Runs beside each other, the first being the base: what differs, by how much, and why.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gui/models/op_totals.hpp"
#include "gui/models/run.hpp"
#include "gui/models/value_table.hpp"

namespace rehearse::gui {

using Runs = std::vector<std::shared_ptr<const Run>>;

// Names that tell the runs apart: "gpt3-175b", "gpt3-175b (2)".
std::vector<std::string> names_of(const Runs& runs);

// Where the steps of runs train different numbers of samples, their times are compared per sample.
double samples_per_step(const Run& run);  // 0: not known
bool per_sample(const Runs& runs);

// A part of the breakdown, of each run.
struct ComparedPart {
  std::string name;
  Kind kind = Kind::compute;
  std::vector<double> seconds;
};
// Exposed communication in one part where a run does not know what it waited for.
std::vector<ComparedPart> compared_breakdowns(const Runs& runs);

// "B is 1.66 x slower: +117.2 ms exposed gradient sync, -9.2 ms compute.": of two judged runs the sentence of
// the simulator's own comparison, which knows why; of others what their breakdowns tell. Empty if a step time
// is not known.
std::string difference_sentence(const Run& base, const Run& other, const std::string& base_name,
                                const std::string& name);

// Step time, rates, MFU, the breakdown and memory: of each run, and what they differ by from the base's.
TableData compared_figures(const Runs& runs, const std::vector<std::string>& names);

// One kind of op, of each run: of a mean rank, in a step.
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
// Against the base; less than a hundredth of the base's time is equal.
Change change_of(const ComparedOp::Amount& base, const ComparedOp::Amount& other);

// Judged runs: as the simulator's tools count them (simulator/trace/op_seconds.hpp), so that predicted and
// measured ones match. Where one is not, from the spans of all. What differs most comes first. May take long
// for big traces.
std::vector<ComparedOp> compared_ops(const Runs& runs, const std::atomic<bool>* cancelled = nullptr);
TableData rows_of(const std::vector<ComparedOp>& ops, const std::vector<std::string>& names);

}  // namespace rehearse::gui
