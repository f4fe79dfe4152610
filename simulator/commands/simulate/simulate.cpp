#include <ostream>

#include "simulator/commands/predicting/fitting_framework.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/predicting/prediction_progress.hpp"
#include "simulator/commands/predicting/side_by_side.hpp"
#include "simulator/commands/predicting/uncertainty.hpp"
#include "simulator/commands/simulate/simulate.hpp"
#include "simulator/commands/simulate/tried_remedies.hpp"
#include "simulator/scenario/reading/command_scenario.hpp"

namespace rehearse {

void run_simulate(const SimulateArguments& arguments, std::istream& in, std::ostream& out,
                  std::ostream& err) {
  Scenario scenario = read_command_scenario(arguments.scenario, arguments.overrides, in, arguments.trace);
  PredictionProgress progress("", scenario.engine, err, arguments.progress_lines);
  Prediction prediction = predict(std::move(scenario), Where::child, progress.watch(),
                                  arguments.trace.empty() ? Detail::figures : Detail::every_span);
  if (arguments.strict) refuse_overflow(prediction);
  explain(prediction, progress.watch());
  if (arguments.advice && arguments.format != Format::csv)
    try_remedies(prediction, processors(), progress.watch().what_ifs);
  tell_fitting_frameworks(prediction, progress.watch().simulation);
  if (arguments.uncertainty)
    prediction.uncertainty = uncertainty(prediction, processors(), progress.watch_uncertainty());
  progress.clear();
  const Result result = prediction.result();
  if (!arguments.trace.empty()) write_chrome_trace(result, arguments.trace);
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
