// Measures how fast traces open and how much memory that takes: a generated trace of a pipeline, plain and
// gzipped.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "benchmarks/gui_trace_file.hpp"
#include "gui/models/trace/trace_file.hpp"

namespace {

using namespace rehearse::gui;

// Returns the peak memory use since the last call, in GB.
double peak_memory() {
  double kilobytes = 0;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) kilobytes = std::strtod(line.c_str() + 6, nullptr);
  std::ofstream("/proc/self/clear_refs") << "5";
  return kilobytes * 1024 / 1e9;
}

void open_trace_of(benchmark::State& state) {
  const TraceFile file(state.range(0), state.range(1) != 0);
  peak_memory();
  std::size_t spans = 0;
  for (auto _ : state) {
    Progress progress;
    const Timeline timeline = read_timeline(file.path(), progress);
    spans = timeline.spans.size();
    if (spans < static_cast<std::size_t>(state.range(0))) state.SkipWithError("spans are missing");
  }
  state.counters["GB"] = peak_memory();
  state.counters["rows_spans"] = static_cast<double>(spans);
  state.SetBytesProcessed(static_cast<std::int64_t>(file.bytes()) * state.iterations());
}

}  // namespace

BENCHMARK(open_trace_of)
    ->ArgNames({"spans", "zipped"})
    ->Args({100'000, 0})
    ->Args({100'000, 1})
    ->Args({1'000'000, 0})
    ->Args({10'000'000, 0})
    ->Args({10'000'000, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
