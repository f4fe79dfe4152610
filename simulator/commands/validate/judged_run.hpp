// Compares recorded runs with the predictions of their scenarios: step time, kinds of ops, overlap,
// breakdown, and the order of several runs.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "simulator/commands/validate/statistics.hpp"
#include "simulator/trace/measurement.hpp"
#include "simulator/trace/op_seconds.hpp"

namespace rehearse {

// A figure of the measured run's median step, and its prediction.
struct MeasuredAndPredicted {
  std::string name, kind;
  double measured = 0, predicted = 0;
  double error() const { return predicted / measured - 1; }  // only if something was measured
};

struct JudgedRun {
  std::string name;      // file name without its ending
  std::string topology;  // "4 x lab (4 GPUs), leaf-spine 2:1"
  std::string strategy;  // "data 4, micro-batch 8, ring all-reduce, fp32"
  int ranks = 0;         // number of all roles together
  Measurement measurement;
  StepTimes times;
  double samples = 0;  // trained per step
  double predicted_step_s = 0;
  std::vector<MeasuredAndPredicted> ops, breakdown;  // seconds; entries that are 0 in both are left out
  MeasuredAndPredicted overlap;                      // shares of the communication that computation hides
  MeasuredAndPredicted memory;                       // bytes of the fullest worker's GPU; measured 0: unknown
  std::string sentence;                              // explains the difference
  std::string group;                                 // cluster and model: only runs of one group are compared
  std::string settings;                              // of the scenario: runs with equal ones are repeats
  std::vector<std::string> notes;                    // assumptions of the prediction
  double error() const { return predicted_step_s / times.median_s - 1; }
};

// Returns the files that `input` refers to: itself if its name ends in .json or .json.gz, those in it,
// sorted, if it is a folder, and none otherwise. Throws InputError for a folder without any.
std::vector<std::string> recorded_runs(const std::string& input);

// Reads and predicts each run; `overrides` only change the predicted scenarios. Throws InputError for files
// that are not recorded runs.
std::vector<JudgedRun> judge(const std::vector<std::string>& paths,
                             const std::vector<std::string>& overrides);

// Returns the pairs of a group whose measured times per sample differ by more than their spread: the middle
// halves of their steps do not overlap. Repeats of one scenario are not compared.
std::vector<Comparison> compared_runs(const std::vector<JudgedRun>& runs);
ErrorSummary summarize(const std::vector<JudgedRun>& runs);
ErrorSummary summarize_memory(const std::vector<JudgedRun>& runs);  // only of those whose memory is known

void write_runs_text(const std::vector<JudgedRun>& runs, std::ostream& out);
void write_runs_csv(const std::vector<JudgedRun>& runs, std::ostream& out);
nlohmann::ordered_json runs_json(const std::vector<JudgedRun>& runs);

}  // namespace rehearse
