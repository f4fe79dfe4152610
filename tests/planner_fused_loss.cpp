// Checks the loss in one kernel: what it moves and holds, and when advice proposes it.
#include <algorithm>
#include <string>

#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/simulate/tried_remedies.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/axes/axis.hpp"
#include "tests/catch.hpp"

using namespace rehearse;

namespace {

// 8 layers of 1,024 with a vocabulary of 256,000: the logits' product and loss are most of the step.
Scenario wide_ends(const std::string& training, const std::string& framework = "") {
  return read_scenario_text(
      "[model.transformer]\nlayers = 8\nhidden = 1024\nheads = 16\nvocabulary = 256000\nsequence_length = "
      "1024\n"
      "[cluster]\npreset = \"dgx-h100\"\nnodes = 1\n[strategy]\ndata = 4\npipeline = 2\n"
      "[training]\nglobal_batch = 32\nmicro_batch = 1\n" +
          training + framework,
      "wide.toml");
}

bool advises_fused_loss(Scenario scenario) {
  Prediction base = predict(std::move(scenario), Where::child);
  try_remedies(base, 2);
  if (!base.remedies) return false;
  return std::any_of(base.remedies->begin(), base.remedies->end(), [](const TriedRemedy& told) {
    return std::count(told.sets.begin(), told.sets.end(), "training.fused_loss=true") > 0;
  });
}

}  // namespace

TEST_CASE("a fused loss reads logits twice, writes them once, and overwrites them") {
  const std::string framework =
      "[framework]\nloss_bytes_per_logit = {value = 45, basis = \"published\", source = \"a test\"}\n";
  struct Case {
    const char* training;
    double moved, peak;  // bytes per logit; 0: those of unfused kernels
  };
  const Case cases[] = {{"precision = \"bf16\"\n", 45, 0},
                        {"precision = \"bf16\"\nfused_loss = true\n", 6, 2},
                        {"precision = \"fp32\"\nfused_loss = true\n", 12, 2}};
  for (const Case& c : cases) {
    CAPTURE(c.training);
    const PassShape shape = pass_shape(wide_ends(c.training, framework));
    CHECK(shape.loss_bytes == c.moved);
    CHECK(shape.kernels.loss_peak_bytes == c.peak);
  }
}

TEST_CASE("advice proposes a fused loss where the loss takes long", "[release]") {
  CHECK(advises_fused_loss(wide_ends("precision = \"bf16\"\n")));
  CHECK_FALSE(advises_fused_loss(wide_ends("precision = \"bf16\"\nfused_loss = true\n")));
}
