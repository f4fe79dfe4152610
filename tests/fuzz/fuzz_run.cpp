// Reads arbitrary bytes as a recorded run, and computes its figures if they are accepted.
#include <cstdint>
#include <string_view>

#include "models/text/error.hpp"
#include "simulator/report/recorded_run.hpp"
#include "simulator/trace/op_seconds.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rehearse;
  try {
    const RecordedRun run = parse_run({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    const int warmup = run.measured ? run.measured->warmup_steps : 0;
    const MeasuredFigures figures = evaluate_measured(run.trace, run.scenario, run.plan, warmup);
    if (!(figures.metrics.step_time_s > 0)) __builtin_trap();
    if (!(overlap(figures.step, 0).hidden_s >= 0)) __builtin_trap();
    seconds_by_op(figures.step, 0);
  } catch (const InputError&) {
  } catch (const RunError&) {  // the run failed, or has no step to measure
  }
  return 0;
}
