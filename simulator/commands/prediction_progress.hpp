// Tells a user how far a prediction is, and beforehand that it will take long.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "models/text/progress_line.hpp"
#include "simulator/commands/predict.hpp"

namespace rehearse {

// "simulating: 42 %", or without a share where it is not known.
std::string progress_text(const SimulationProgress& progress);

// Why a stage will take long, and what would be faster: from some ten seconds on, told by counts and not by a
// clock. Empty: it will not.
std::string long_run_note(const SimulationProgress& progress, const EngineOptions& engine);

// A line on standard error if that is a terminal, or lines on `err` if so asked; and notes on `err` wherever
// that goes. It must outlive what it watches.
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
