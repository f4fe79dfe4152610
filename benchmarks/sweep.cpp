// Measures the real time of a sweep of 1,000 small scenarios on all processors of this machine, including the
// file that it writes.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "simulator/commands/sweep/sweep.hpp"

namespace {

using namespace rehearse;

double processor_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    getrusage(who, &used);
    for (const timeval& t : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return sum;
}

void sweep(benchmark::State& state, const char* scenario, std::vector<std::string> vary) {
  SweepArguments arguments;
  arguments.input = scenario;
  arguments.vary = std::move(vary);
  arguments.out =
      (std::filesystem::temp_directory_path() / ("rehearse-sweep-" + std::to_string(getpid()) + ".csv"))
          .string();
  arguments.force_new = true;
  std::istringstream in;
  std::ostringstream err;
  const double before = processor_seconds();
  for ([[maybe_unused]] auto iteration : state) {
    if (run_sweep(arguments, in, err) != 0) state.SkipWithError("a point failed");
  }
  state.counters["processor_s"] =
      benchmark::Counter(processor_seconds() - before, benchmark::Counter::kAvgIterations);
  std::filesystem::remove(arguments.out);
  state.SetItemsProcessed(state.iterations() * 1000);
}

// ResNet-50 with ring all-reduce: 5 cluster sizes x 4 micro-batch sizes x 50 network speeds.
void Sweep1000(benchmark::State& state) {
  sweep(state, REHEARSE_SCENARIOS "/resnet50-ring.toml",
        {"cluster.nodes=1..16*2", "training.micro_batch=1..8*2", "cluster.nic_gbps=1..50"});
}

// Llama 3 405B on 16,384 GPUs: ZeRO stages 0 to 3 x recomputation x 125 network speeds.
void SweepLlm1000(benchmark::State& state) {
  sweep(state, REHEARSE_SCENARIOS "/llama3-405b.toml",
        {"strategy.zero_stage=0..3", "training.recompute=none,selective", "cluster.nic_gbps=276..400"});
}

BENCHMARK(Sweep1000)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(SweepLlm1000)->UseRealTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
