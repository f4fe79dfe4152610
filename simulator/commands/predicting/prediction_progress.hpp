// Reports the progress of a prediction to the user, and says beforehand if it will take long.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/terminal/progress_line.hpp"

namespace rehearse {

// Returns "simulating: 42 %", or a text without a percentage if that is unknown.
std::string progress_text(const SimulationProgress& progress);

// Returns why a stage will take long, which is from some ten seconds on, and what would be faster; empty if
// it will not take long. Counts decide, not a clock.
std::string long_run_note(const SimulationProgress& progress, const EngineOptions& engine);

// Shows progress in a line on standard error if that is a terminal, or as lines on `err` if requested; writes
// notes to `err` in any case. It must outlive what it watches.
class PredictionProgress {
public:
  PredictionProgress(std::string label, const EngineOptions& engine, std::ostream& err, bool lines = false)
      : label_(std::move(label)), engine_(engine), err_(err), lines_(lines) {}

  WatchPrediction watch();
  std::function<void(std::size_t ended, std::size_t all)> watch_uncertainty();
  void clear() { line_.clear(); }

private:
  void show(const std::string& text);
  std::string label_;
  EngineOptions engine_;
  std::ostream& err_;
  ProgressLine line_;
  bool lines_, told_ = false;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace rehearse
