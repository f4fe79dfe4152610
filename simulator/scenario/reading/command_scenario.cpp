#include "simulator/scenario/reading/command_scenario.hpp"

#include <fmt/format.h>

#include "models/text/error.hpp"
#include "models/text/output_file.hpp"
#include "models/text/printable.hpp"
#include "models/text/read_text.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {

Scenario read_command_scenario(const std::string& path, const std::vector<std::string>& overrides,
                               std::istream& in, const OutputOptions& outputs) {
  const bool piped = path == "-";
  const FilesRead files_read;
  Scenario scenario = piped ? read_scenario_text(read_text(in, "<stdin>", "scenario"), "<stdin>", overrides)
                            : read_scenario_file(path, overrides);
  std::vector<std::string> files = files_read.paths();
  if (piped) files.emplace_back("/dev/stdin");
  for (const auto& [option, output] : outputs) {
    if (output.empty()) continue;
    refuse_to_overwrite(option, output, files);
    for (const auto& [other, its_output] : outputs)
      if (&other != &option && (output == its_output || same_file(output, its_output)))
        throw InputError({}, fmt::format("{} and {} name the same file, {}; allowed: two files", option,
                                         other, printable(output)));
  }
  return scenario;
}

}  // namespace rehearse
