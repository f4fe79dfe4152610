#include "simulator/commands/predicting/prediction_progress.hpp"

#include <fmt/format.h>

#include <ostream>

#include "models/text/text.hpp"

namespace rehearse {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{100};

// Counts that take some ten seconds on one core of 2020.
constexpr std::int64_t kManyMembers = 2'000'000;  // members of all transfers, before ranks are folded
constexpr std::int64_t kManyEvents = 2'000'000;   // events on links that are not shared
constexpr std::int64_t kManyUnfolded = 100'000;   // events if the transfers of all ranks share links

std::string faster(const EngineOptions& engine) {
  if (engine.fidelity == Fidelity::chunk) return "fidelity = \"flow\", or a larger chunk_kb, is faster";
  if (!engine.fold) return "one rank of each kind (without --no-fold, or fold = true) is faster";
  if (engine.fidelity == Fidelity::flow) return "fidelity = \"auto\" is faster";
  return "fewer ranks or fewer steps are faster";
}

}  // namespace

std::string progress_text(const SimulationProgress& progress) {
  const std::string_view stage = kSimulationStageNames[static_cast<std::size_t>(progress.stage)];
  if (progress.total <= 0) return fmt::format("{} ...", stage);
  return fmt::format("{}: {} %", stage, 100 * progress.done / progress.total);
}

std::string long_run_note(const SimulationProgress& progress, const EngineOptions& engine) {
  switch (progress.stage) {
    case SimulationStage::network:
      if (progress.total < kManyMembers) return "";
      return fmt::format("this will take long: transfers have {} ends; a cluster with fewer nodes is faster",
                         with_thousands(progress.total));
    case SimulationStage::ranks:
      return "";
    case SimulationStage::run:
      if (progress.total < (engine.fold ? kManyEvents : kManyUnfolded)) return "";
      return fmt::format("this will take long: {} ops and messages are simulated; {}",
                         with_thousands(progress.total), faster(engine));
  }
  return "";
}

void PredictionProgress::show(const std::string& text) {
  if (!lines_) return line_.show(text);
  const auto now = std::chrono::steady_clock::now();
  if (now - shown_ < kBetweenLines) return;
  shown_ = now;
  err_ << text << std::endl;
}

WatchPrediction PredictionProgress::watch() {
  WatchPrediction watch;
  watch.simulation = [this](const SimulationProgress& progress) {
    const std::string note = long_run_note(progress, engine_);
    if (!note.empty() && !told_) {
      line_.clear();
      err_ << fmt::format("rehearse: {}{}\n", label_, note) << std::flush;
      told_ = true;
    }
    show(label_ + progress_text(progress));
  };
  watch.what_ifs = [this](std::size_t ended, std::size_t all) {
    show(fmt::format("{}effects of 10 % more of a resource: {} of {}", label_, ended, all));
  };
  return watch;
}

std::function<void(std::size_t, std::size_t)> PredictionProgress::watch_uncertainty() {
  return [this](std::size_t ended, std::size_t all) {
    show(fmt::format("{}with other constants: {} of {}", label_, ended, all));
  };
}

}  // namespace rehearse
