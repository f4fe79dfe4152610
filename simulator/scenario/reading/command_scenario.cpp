#include "simulator/scenario/reading/command_scenario.hpp"

#include "models/text/output_file.hpp"
#include "models/text/read_text.hpp"
#include "simulator/scenario/reading/read_scenario.hpp"

namespace rehearse {

Scenario read_command_scenario(const std::string& path, const std::vector<std::string>& overrides,
                               std::istream& in, const std::string& output, const std::string& option) {
  const bool piped = path == "-";
  const FilesRead files_read;
  Scenario scenario = piped ? read_scenario_text(read_text(in, "<stdin>", "scenario"), "<stdin>", overrides)
                            : read_scenario_file(path, overrides);
  std::vector<std::string> files = files_read.paths();
  if (piped) files.emplace_back("/dev/stdin");
  if (!output.empty()) refuse_to_overwrite(option, output, files);
  return scenario;
}

}  // namespace rehearse
