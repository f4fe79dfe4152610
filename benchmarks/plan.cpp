// Measures how fast plans are bounded and searched: plans per second on one core, and entire searches on all
// cores.
#include <benchmark/benchmark.h>

#include <limits>
#include <string>

#include "models/text/document.hpp"
#include "simulator/commands/plan/plan_runs.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"

namespace {

using namespace rehearse;

PlanQuestion question_of(const char* scenario, std::vector<std::string> overrides) {
  const std::string path = std::string(REHEARSE_SCENARIOS "/") + scenario;
  return plan_question(read_text_file(path, "scenario file"), path, overrides);
}

// Bounds the memory and step time of every plan for GPT-3 175B from below.
void bound_gpt3(benchmark::State& state) {
  const PlanQuestion question =
      question_of("gpt3-175b.toml", {"cluster.nodes=" + std::to_string(state.range(0) / 8)});
  const SpaceLimits limits;
  std::int64_t plans = 0;
  for (auto _ : state) {
    const PlanSearch search(question.scenario, limits,
                            question.scenario.cluster->node().device.memory_bytes.value, std::nullopt,
                            [&](const CoreChoice& split) { return refusal(question, split); });
    plans += search.space().plans;
  }
  state.counters["plans/s"] = benchmark::Counter(static_cast<double>(plans), benchmark::Counter::kIsRate);
}
BENCHMARK(bound_gpt3)->Arg(64)->Arg(1024)->Unit(benchmark::kMillisecond);

void search(benchmark::State& state, const char* scenario, const std::vector<std::string>& overrides) {
  constexpr double kTolerance = 0.005, kMostOps = 150'000;
  PlanLimits limits;
  limits.tolerance = kTolerance;
  limits.most_ops = kMostOps;
  double step_s = 0, simulated = 0;
  for (auto _ : state) {
    PlanWorld world;
    world.question = question_of(scenario, overrides);
    std::vector<SearchedWorld> worlds;
    worlds.push_back(limited(std::move(world), limits));
    simulate(worlds, limits, processors(), nullptr, [](const PlanProgress&) {});
    step_s = worlds.front().simulated.front().figures.step_time_s;
    simulated = static_cast<double>(worlds.front().simulated.size());
  }
  state.counters["step_s"] = step_s;
  state.counters["simulated"] = simulated;
}
BENCHMARK_CAPTURE(search, gpt3_on_64, "gpt3-175b.toml", {"cluster.nodes=8", "training.global_batch=1536"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(3);
BENCHMARK_CAPTURE(search, gpt3_on_1024, "gpt3-175b.toml", {"cluster.nodes=128", "training.global_batch=1536"})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);
BENCHMARK_CAPTURE(search, llama3_405b_on_16384, "llama3-405b.toml", {})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
