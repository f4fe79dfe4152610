#include <algorithm>
#include <cctype>
#include <deque>
#include <istream>
#include <optional>
#include <ostream>
#include <utility>

#include "models/text/error.hpp"
#include "models/text/printable.hpp"
#include "models/text/read_text.hpp"
#include "simulator/commands/compare/compare.hpp"
#include "simulator/commands/compare/comparison_table.hpp"
#include "simulator/commands/predicting/fitting_framework.hpp"
#include "simulator/commands/predicting/predict.hpp"
#include "simulator/commands/predicting/prediction_progress.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {
namespace {

constexpr int kInputWrong = 2, kRunFailed = 1;

// Splits "a=1 b=[2, 3]" at its spaces, except for those inside quotes and brackets.
std::vector<std::string> assignments(const std::string& variant) {
  std::vector<std::string> found;
  std::string current;
  int depth = 0;
  char quote = 0;
  for (const char c : variant) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (depth <= 0 && std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (!current.empty()) found.push_back(std::exchange(current, {}));
      continue;
    }
    current += c;
  }
  if (!current.empty()) found.push_back(current);
  if (found.empty())
    throw InputError({"--variant", 0, 0}, "it changes nothing; allowed: \"key=value key=value\"");
  return found;
}

// Returns A, B, ... Z, AA, AB, ...
std::string letter_of(std::size_t number) {
  std::string letters;
  for (++number; number > 0; number = (number - 1) / 26)
    letters.insert(letters.begin(), static_cast<char>('A' + (number - 1) % 26));
  return letters;
}

struct Wanted {
  std::string path;
  std::optional<std::string> variant;  // nullopt: the unchanged file
};

class Reader {
public:
  Reader(const CompareArguments& arguments, std::istream& in) : arguments_(arguments) {
    if (std::count(arguments.scenarios.begin(), arguments.scenarios.end(), "-") > 0)
      input_ = read_text(in, "<stdin>", "scenario");
  }

  Scenario read(const Wanted& wanted) const {
    std::vector<std::string> overrides = arguments_.overrides;
    if (wanted.variant)
      for (std::string& assignment : assignments(*wanted.variant)) overrides.push_back(std::move(assignment));
    return wanted.path == "-" ? read_scenario_text(input_, "<stdin>", overrides)
                              : read_scenario_file(wanted.path, overrides);
  }

private:
  const CompareArguments& arguments_;
  std::string input_;
};

}  // namespace

int run_compare(const CompareArguments& arguments, std::istream& in, std::ostream& out, std::ostream& err) {
  std::vector<Wanted> wanted;
  for (const std::string& path : arguments.scenarios) wanted.push_back({path, {}});
  for (const std::string& variant : arguments.variants)
    wanted.push_back({arguments.scenarios.front(), variant});

  const Reader reader(arguments, in);
  int status = 0;
  std::deque<Prediction> predictions;
  std::deque<Result> results;
  std::vector<Compared> all;
  for (const Wanted& one : wanted) {
    Compared compared;
    compared.letter = letter_of(all.size());
    const std::string changes = one.variant ? " with " + printable(*one.variant) : "";
    compared.name = printable(one.path) + changes;
    try {
      Scenario scenario = reader.read(one);
      compared.name = scenario.name + changes;
      PredictionProgress progress(compared.letter + ": ", scenario.engine, err);
      Prediction prediction = predict(std::move(scenario), Where::child, progress.watch());
      if (arguments.strict) refuse_overflow(prediction);
      explain(prediction, progress.watch());
      tell_fitting_frameworks(prediction, progress.watch().simulation);
      predictions.push_back(std::move(prediction));
      results.push_back(predictions.back().result());
      compared.result = &results.back();
    } catch (const InputError& error) {
      compared.error = error.what();
      status = kInputWrong;
    } catch (const RunError& error) {
      compared.error = error.what();
      status = std::max(status, kRunFailed);
    }
    if (compared.result == nullptr) err << "rehearse: " << compared.letter << ": " << compared.error << '\n';
    all.push_back(std::move(compared));
  }
  switch (arguments.format) {
    case Format::text:
      write_comparison_text(all, out);
      break;
    case Format::json:
      write_comparison_json(all, out);
      break;
    case Format::csv:
      write_comparison_csv(all, out);
      break;
  }
  return status;
}

}  // namespace rehearse
