// Implements `rehearse validate`: predicts measured runs and shows the errors.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/terminal/output_format.hpp"
#include "simulator/terminal/subcommand.hpp"

namespace rehearse {

struct ValidateArguments {
  // Recorded runs (.json, .json.gz), folders of them, names of shipped tables or files of tables; empty: all
  // shipped tables.
  std::vector<std::string> inputs;
  std::vector<std::string> overrides;  // "key=value", for every prediction
  bool uncertainty = false;            // for tables: predictions as intervals
  // Id of a row in the only table, which must contain step times: reports the row's breakdown and each term's
  // effect.
  std::string explain;
  Format format = Format::text;
};
// Compares measurements with their predictions.
void run_validate(const ValidateArguments& arguments, std::ostream& out);

RunSubcommand add_validate(CLI::App& options);

}  // namespace rehearse
