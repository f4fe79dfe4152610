// Predicts how long a step of a scenario takes: step_time [SCENARIO.toml] [KEY=VALUE]...
#include <cstdio>
#include <rehearse.hpp>

int main(int argc, char** argv) try {
  const std::string shipped = rehearse::data_folder("simulator/scenarios") / "resnet50-ring.toml";
  const std::string file = argc > 1 ? argv[1] : shipped;
  const std::vector<std::string> overrides(argv + std::min(argc, 2), argv + argc);
  const rehearse::Prediction prediction =
      rehearse::predict(rehearse::read_scenario_file(file, overrides), rehearse::Where::child);
  std::printf("%s: %.6g s on %d devices\n", prediction.scenario.name.c_str(), prediction.metrics.step_time_s,
              prediction.metrics.devices);
  return 0;
} catch (const rehearse::InputError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "step_time: %s\n", error.what());
  return 1;
}
