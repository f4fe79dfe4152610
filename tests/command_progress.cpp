// Tests the messages before and during a prediction that takes long.
#include <sstream>
#include <string>

#include "simulator/commands/predicting/prediction_progress.hpp"
#include "tests/catch.hpp"
#include "tests/command_run.hpp"

using namespace rehearse;

TEST_CASE("progress is a stage and its share") {
  CHECK(progress_text({SimulationStage::network, 5, 20}) == "laying out transfers: 25 %");
  CHECK(progress_text({SimulationStage::ranks, 0, 0}) == "finding equivalent ranks ...");
  CHECK(progress_text({SimulationStage::run, 3'999'999, 4'000'000}) == "simulating: 99 %");
}

TEST_CASE("what will take long is said beforehand, with what would be faster") {
  const auto options = [](Fidelity fidelity, bool fold) {
    EngineOptions engine;
    engine.fidelity = fidelity;
    engine.fold = fold;
    return engine;
  };
  const EngineOptions automatic = options(Fidelity::automatic, true);
  CHECK(long_run_note({SimulationStage::network, 0, 1'999'999}, automatic).empty());
  CHECK(long_run_note({SimulationStage::network, 0, 16'000'000}, automatic) ==
        "this will take long: transfers have 16,000,000 ends; a cluster with fewer nodes is faster");
  CHECK(long_run_note({SimulationStage::ranks, 0, 0}, automatic).empty());
  CHECK(long_run_note({SimulationStage::run, 0, 1'999'999}, automatic).empty());
  struct Case {
    EngineOptions engine;
    const char* faster;
  };
  for (const Case& c :
       {Case{automatic, "fewer ranks or fewer steps are faster"},
        Case{options(Fidelity::automatic, false),
             "one rank of each kind (without --no-fold, or fold = true) is faster"},
        Case{options(Fidelity::flow, true), "fidelity = \"auto\" is faster"},
        Case{options(Fidelity::chunk, true), "fidelity = \"flow\", or a larger chunk_kb, is faster"}})
    CHECK(long_run_note({SimulationStage::run, 0, 2'000'000}, c.engine) ==
          std::string("this will take long: 2,000,000 ops and messages are simulated; ") + c.faster);
  CHECK_FALSE(long_run_note({SimulationStage::run, 0, 100'000}, options(Fidelity::automatic, false)).empty());
}

TEST_CASE("the note is given once, and no progress where there is no terminal") {
  std::ostringstream err;
  PredictionProgress progress("B: ", {}, err);
  const WatchPrediction watch = progress.watch();
  for (const std::int64_t done : {0, 1'000'000, 3'000'000})
    watch.simulation({SimulationStage::run, done, 4'000'000});
  CHECK(err.str() ==
        "rehearse: B: this will take long: 4,000,000 ops and messages are simulated; fewer ranks or fewer "
        "steps are faster\n");
}
