// Measures the speed of the engine: compared with a bare SimGrid program, and for entire steps on large
// clusters. SimGrid can simulate only once per process, so each iteration runs in a child process; the
// measured time is the processor time of the work inside it.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "benchmarks/bare_simgrid.hpp"
#include "simulator/engine/engine.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"
#include "simulator/strategies/strategy.hpp"

namespace {

using namespace rehearse;

constexpr double kBytes = 1e9, kBandwidth = 50e9, kHopLatency = 250e-9;

double seconds_in_child(const std::function<void()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const std::clock_t start = std::clock();
    work();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const bool written = write(ends[1], &seconds, sizeof seconds) == sizeof seconds;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  double seconds = -1;
  if (read(ends[0], &seconds, sizeof seconds) != sizeof seconds) seconds = -1;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return seconds;
}

void time_in_child(benchmark::State& state, const std::function<void()>& work) {
  for ([[maybe_unused]] auto iteration : state) {
    const double seconds = seconds_in_child(work);
    if (seconds < 0) {
      state.SkipWithError("the simulation failed");
      return;
    }
    state.SetIterationTime(seconds);
  }
}

ClusterParts star(int nodes) {
  ClusterParts parts;
  parts.name = "star";
  parts.node.device = device_preset("a100-80");
  parts.node.devices = 1;
  parts.node.interconnect = Node::Interconnect::none;
  parts.node.nic_bandwidth = kBandwidth;
  parts.fabric.latency_s = kHopLatency;
  parts.nodes = nodes;
  return parts;
}

Run ring(int ranks) {
  Schedule s;
  s.roles = {{"worker", {Mesh({{"data", ranks}})}}};
  Program p;
  p.name = "worker";
  p.streams = {"gradients"};
  Op op;
  op.name = "all-reduce";
  op.kind = OpKind::collective;
  op.collective.group = {{{0}}};
  op.collective.bytes = kBytes;
  p.ops = {op};
  s.programs = {p};
  Job job;
  job.phases = {{std::make_shared<Schedule>(s), 1}};
  for (int r = 0; r < ranks; ++r) job.endpoints.push_back(r);
  Run run;
  run.jobs = {job};
  return run;
}

// Builds the cluster outside the timed part, because the bare program has its figures built in.
void time_ring(benchmark::State& state, int ranks, Fidelity fidelity, bool fold) {
  EngineOptions options;
  options.fidelity = fidelity;
  options.protocol = Protocol::ideal;
  options.fold = fold;
  const auto cluster = make_cluster(star(ranks));
  time_in_child(state, [&] { benchmark::DoNotOptimize(simulate(ring(ranks), *cluster, options).end_s); });
}

void BareRing(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  time_in_child(state,
                [&] { benchmark::DoNotOptimize(bare_ring(ranks, kBytes, kBandwidth, 2 * kHopLatency)); });
  state.SetItemsProcessed(state.iterations() * 2L * (ranks - 1) * ranks);
}

void ChunkRing(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  time_ring(state, ranks, Fidelity::chunk, false);
  state.SetItemsProcessed(state.iterations() * 2L * (ranks - 1) * ranks);
}

void FlowRing(benchmark::State& state) {
  time_ring(state, static_cast<int>(state.range(0)), Fidelity::flow, state.range(1) != 0);
}

// Runs everything from the scenario to the trace except printing.
void simulate_scenario(const Scenario& scenario) {
  const Plan plan = write_schedule(scenario);
  Job job;
  job.phases = {{plan.schedule, scenario.steps}};
  job.endpoints = plan.endpoints;
  Run run;
  run.jobs = {job};
  benchmark::DoNotOptimize(simulate(run, *scenario.cluster, scenario.engine).end_s);
}

void simulate_gpt3(const std::vector<std::string>& overrides) {
  simulate_scenario(read_scenario_file(REHEARSE_SCENARIOS "/gpt3-175b.toml", overrides));
}

// GPT-3 175B on A100s: pipeline 16 x data `range`, with the same work per rank for any `range`.
void Gpt3(benchmark::State& state) {
  const long data = state.range(0);
  const std::vector<std::string> overrides = {"strategy.data=" + std::to_string(data), "strategy.pipeline=16",
                                              "cluster.nodes=" + std::to_string(2 * data),
                                              "training.global_batch=" + std::to_string(24 * data)};
  time_in_child(state, [&] { simulate_gpt3(overrides); });
}

// GPT-3 175B on 1,024 A100s: tensor 8 x pipeline 8 x data 16, with or without sequence parallelism.
void Gpt3Tensor(benchmark::State& state) {
  const std::vector<std::string> overrides = {
      "strategy.tensor=8",
      "strategy.pipeline=8",
      "strategy.data=16",
      "cluster.nodes=128",
      "training.global_batch=1536",
      "training.recompute=selective",
      std::string("strategy.sequence_parallel=") + (state.range(0) != 0 ? "true" : "false")};
  time_in_child(state, [&] { simulate_gpt3(overrides); });
}

// Like Gpt3Tensor with a quarter of its batch, but simulates every rank, and all collectives as flows.
void Gpt3Unfolded(benchmark::State& state) {
  const std::vector<std::string> overrides = {"strategy.tensor=8",         "strategy.pipeline=8",
                                              "strategy.data=16",          "cluster.nodes=128",
                                              "training.global_batch=384", "training.recompute=selective",
                                              "simulation.fold=false",     "simulation.fidelity=flow"};
  time_in_child(state, [&] { simulate_gpt3(overrides); });
}

// Llama 3 405B on `data` x 128 H100s: tensor 8 x pipeline 16, 16 micro-batches. The ZeRO stage is 0, 1 as in
// the scenario, or 3, which shards the weights as well.
void Llama405b(benchmark::State& state) {
  const long data = state.range(0);
  const std::vector<std::string> overrides = {"cluster.nodes=" + std::to_string(16 * data),
                                              "strategy.data=" + std::to_string(data),
                                              "training.global_batch=" + std::to_string(16 * data),
                                              "strategy.schedule=1f1b",
                                              "strategy.virtual_stages=1",
                                              "strategy.zero_stage=" + std::to_string(state.range(1))};
  time_in_child(state, [&] {
    simulate_scenario(read_scenario_file(REHEARSE_SCENARIOS "/llama3-405b.toml", overrides));
  });
}

// DeepSeek-V3 on 2,048 GPUs: pipeline 16, experts over `expert` ranks, 120 micro-batches. With 64: arXiv
// 2412.19437, sections 3 and 4.2.
void DeepSeekV3(benchmark::State& state) {
  const char* const text =
      "[model]\npreset = \"deepseek-v3\"\n[training]\nglobal_batch = 15360\nmicro_batch = 1\n"
      "precision = \"fp8\"\n[cluster]\npreset = \"dgx-h100\"\nnodes = 256\n[strategy]\npipeline = 16\n"
      "zero_stage = 1\nschedule = \"dualpipe-v\"\n";
  const std::vector<std::string> overrides = {"strategy.expert=" + std::to_string(state.range(0))};
  time_in_child(state, [&] { simulate_scenario(read_scenario_text(text, "deepseek-v3.toml", overrides)); });
}

// GPT-3 175B, tensor 8 x pipeline `stages` x data 8, with `microbatches` for each replica.
void Gpt3Pipeline(benchmark::State& state) {
  const long stages = state.range(0), microbatches = state.range(1);
  const std::vector<std::string> overrides = {"strategy.tensor=8",
                                              "strategy.pipeline=" + std::to_string(stages),
                                              "strategy.data=8",
                                              "cluster.nodes=" + std::to_string(8 * stages),
                                              "training.global_batch=" + std::to_string(8 * microbatches),
                                              "training.recompute=selective"};
  time_in_child(state, [&] { simulate_gpt3(overrides); });
}

BENCHMARK(BareRing)->Arg(8)->Arg(64)->Arg(512)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(ChunkRing)->Arg(8)->Arg(64)->Arg(512)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(FlowRing)
    ->ArgNames({"ranks", "fold"})
    ->Args({1024, 1})
    ->Args({1024, 0})
    ->Args({16384, 1})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Gpt3)->ArgName("data")->Arg(1)->Arg(64)->Arg(128)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
BENCHMARK(Gpt3Tensor)->ArgName("sequence")->Arg(0)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(Gpt3Unfolded)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(Llama405b)
    ->ArgNames({"data", "zero"})
    ->Args({1, 0})
    ->Args({128, 0})
    ->Args({128, 1})
    ->Args({128, 3})
    ->Args({8, 1})
    ->Args({1024, 1})
    ->Args({4096, 1})
    ->Args({8192, 1})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(DeepSeekV3)
    ->ArgName("expert")
    ->Arg(4)
    ->Arg(16)
    ->Arg(64)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(Gpt3Pipeline)
    ->ArgNames({"stages", "microbatches"})
    ->Args({4, 96})
    ->Args({16, 96})
    ->Args({48, 96})
    ->Args({16, 24})
    ->Args({16, 384})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
