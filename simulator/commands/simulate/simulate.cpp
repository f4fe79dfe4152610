#include <ostream>

#include "models/text/error.hpp"
#include "simulator/commands/predicting/fitting_framework.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/predicting/prediction_progress.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/predicting/uncertainty.hpp"
#include "simulator/commands/simulate/simulate.hpp"
#include "simulator/commands/simulate/tried_remedies.hpp"
#include "simulator/report/memory_snapshot.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"

namespace rehearse {
namespace {

// Times and micro-batches of tensors are those of the whole step.
bool wants_every_span(const SimulateArguments& arguments) {
  return arguments.memory || !arguments.trace.empty() || !arguments.memory_trace.empty();
}

}  // namespace

void run_simulate(const SimulateArguments& arguments, std::istream& in, std::ostream& out,
                  std::ostream& err) {
  if (arguments.memory && arguments.format == Format::csv)
    throw InputError({}, "--memory has no columns in CSV; allowed: --format text or json");
  Scenario scenario =
      read_command_scenario(arguments.scenario, arguments.overrides, in,
                            {{"--trace", arguments.trace}, {"--memory-trace", arguments.memory_trace}});
  PredictionProgress progress("", scenario.engine, err, arguments.progress_lines);
  Prediction prediction = predict(std::move(scenario), Where::child, progress.watch(),
                                  wants_every_span(arguments) ? Detail::every_span : Detail::figures);
  if (arguments.strict) refuse_overflow(prediction);
  explain(prediction, progress.watch());
  if (arguments.advice && arguments.format != Format::csv)
    try_remedies(prediction, processors(), progress.watch().what_ifs);
  tell_fitting_frameworks(prediction, progress.watch().simulation);
  if (arguments.uncertainty)
    prediction.uncertainty = uncertainty(prediction, processors(), progress.watch_uncertainty());
  progress.clear();
  Result result = prediction.result();
  result.tells_tensors = arguments.memory;
  if (!arguments.trace.empty()) write_chrome_trace(result, arguments.trace);
  if (!arguments.memory_trace.empty()) write_memory_snapshot(result, arguments.memory_trace);
  switch (arguments.format) {
    case Format::text:
      write_text(result, out);
      break;
    case Format::json:
      write_json(result, out);
      break;
    case Format::csv:
      write_csv(result, out);
      break;
  }
}

}  // namespace rehearse
